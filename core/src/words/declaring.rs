//! How texts are declared, in the file of what says them.

/// Makes a method of `Language` of each text in a list, and a test that every catalogue has it. `[count]` marks the
/// texts that have a form for one and a form for other numbers.
macro_rules! texts {
    ($($name:ident $([$count:ident])? ($($value:ident),*);)*) => {
        impl $crate::words::Language {
            $(
                #[doc = concat!("The text `", stringify!($name), "` of the catalogues.")]
                #[must_use]
                pub fn $name(self $(, $count: u64)? $(, $value: impl std::fmt::Display)*) -> String {
                    let counts: &[u64] = &[$($count)?];
                    $crate::words::say(
                        self,
                        stringify!($name),
                        counts.first().copied(),
                        &[$((stringify!($count), &$count),)? $((stringify!($value), &$value),)*],
                    )
                }
            )*
        }

        #[cfg(test)]
        #[test]
        fn every_language_has_these_texts() {
            $(
                let places = [$(stringify!($count),)? $(stringify!($value),)*];
                let is_counted = !"".eq(concat!($(stringify!($count))?));
                $crate::words::check_text(stringify!($name), &places, is_counted);
            )*
        }
    };
}

pub(crate) use texts;
