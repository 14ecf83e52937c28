//! Settings that are a choice among names.

/// A text that is not a valid name of a setting's value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not one of {}{}", bufgym_util::input::excerpt(.given), .known.join(", "), bufgym_util::input::suggestion(.given, .known))]
pub struct UnknownName {
    /// The text given.
    pub given: String,
    /// The valid names.
    pub known: Vec<&'static str>,
}

/// Declares an enum whose values have names. The names are the same in TOML, JSON, CSV and on the
/// command line.
macro_rules! named {
    ($(#[$meta:meta])* $type:ident { $($(#[$variant_meta:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(serde::Serialize)]
        #[serde(into = "&'static str")]
        pub enum $type {
            $($(#[$variant_meta])* $variant,)+
        }

        impl $type {
            /// Every value, in the order of the declaration.
            pub const ALL: &'static [$type] = &[$($type::$variant,)+];

            /// The name used in files and on the command line.
            pub const fn name(self) -> &'static str {
                match self {
                    $($type::$variant => $name,)+
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::scenario::UnknownName;

            fn from_str(text: &str) -> Result<$type, $crate::scenario::UnknownName> {
                $type::ALL.iter().copied().find(|value| value.name() == text).ok_or_else(|| $crate::scenario::UnknownName {
                    given: text.to_owned(),
                    known: $type::ALL.iter().map(|value| value.name()).collect(),
                })
            }
        }

        impl From<$type> for &'static str {
            fn from(value: $type) -> &'static str {
                value.name()
            }
        }



    };
}

pub(super) use named;
