//! Every rule has a test that makes it fire and one that comes near and must not.

/// Makes a test of each function, which the table below names too.
macro_rules! tests {
    ($($(#[$attribute:meta])* $name:ident),* $(,)?) => {
        mod tests {
            $(#[test] $(#[$attribute])* fn $name() { super::$name(); })*
        }
    };
}
pub(crate) use tests;
