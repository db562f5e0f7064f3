//! TLS towards clients and towards the server.

use super::{ProxyError, Speak};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::{TlsAcceptor, TlsConnector};

fn bad(path: &Path, why: impl std::fmt::Display) -> ProxyError {
    ProxyError::Certificate { path: path.to_owned(), why: why.to_string() }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ProxyError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).map_err(|e| bad(path, e))?.collect();
    let all = all.map_err(|e| bad(path, e))?;
    if all.is_empty() {
        return Err(bad(path, "no certificate in it; expected PEM, `-----BEGIN CERTIFICATE-----`"));
    }
    Ok(all)
}

/// Serves clients with this certificate chain and key.
pub(super) fn acceptor(chain: &Path, key: &Path) -> Result<TlsAcceptor, ProxyError> {
    let certificates = certificates(chain)?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|e| bad(key, format!("no private key: {e}")))?;
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|e| ProxyError::Tls(e.to_string()))?;
    let config = config.with_no_client_auth().with_single_cert(certificates, private);
    let mut config = config.map_err(|e| bad(chain, e))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Trusts what the system trusts, and these.
pub(super) fn connector(trusted: &[PathBuf], speak: Speak) -> Result<TlsConnector, ProxyError> {
    let mut roots = RootCertStore::empty();
    let system = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(system.certs);
    for path in trusted {
        for certificate in certificates(path)? {
            roots.add(certificate).map_err(|e| bad(path, e))?;
        }
    }
    if roots.is_empty() {
        let why = system.errors.first().map_or_else(|| "the system has none".to_owned(), ToString::to_string);
        return Err(ProxyError::Tls(format!(
            "no certificates to check the server's against ({why}); install ca-certificates or give --ca FILE"
        )));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|e| ProxyError::Tls(e.to_string()))?;
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = match speak {
        Speak::Auto => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        Speak::Http1 => vec![b"http/1.1".to_vec()],
        Speak::Http2 => vec![b"h2".to_vec()],
    };
    Ok(TlsConnector::from(Arc::new(config)))
}
