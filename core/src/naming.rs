//! Enums whose variants have names.

/// Declares an enum whose variants have names, with the list of all, which no new variant can be missing from.
#[macro_export]
macro_rules! named {
    (
        $(#[$about:meta])*
        $vis:vis enum $Enum:ident {
            $($(#[$doc:meta])* $variant:ident = $name:expr,)+
        }
    ) => {
        $(#[$about])*
        $vis enum $Enum {
            $($(#[$doc])* $variant,)+
        }

        impl $Enum {
            /// All of them.
            $vis const ALL: [Self; [$(stringify!($variant)),+].len()] = [$(Self::$variant),+];

            /// Its name, as it is stored, said or shown.
            #[must_use]
            $vis fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// The one with a name.
            #[must_use]
            $vis fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|it| it.name() == name)
            }
        }
    };
}
