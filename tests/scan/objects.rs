//! Object stores.

#[cfg(not(feature = "objects"))]
#[test]
fn a_build_without_object_stores_says_so() {
    let out = crate::kit::scan(&["s3://bucket/logs"]);
    assert_eq!(out.status, 2);
    assert!(out.error.contains("--features objects"), "{}", out.error);
}
