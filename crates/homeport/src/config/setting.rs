//! The declaration of a setting. The command line, the file parser and the documents all use it, so flag, variable, key,
//! default and description are written once.

use crate::config::value::Kind;

/// A table of the configuration file with its settings.
#[derive(Debug)]
pub(crate) struct Section {
    /// The table's name in the file.
    pub(crate) table: &'static str,
    pub(crate) about: &'static str,
    pub(crate) settings: &'static [Setting],
}

/// The declaration of one setting.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) table: &'static str,
    pub(crate) key: &'static str,
    /// Without the leading dashes.
    pub(crate) flag: &'static str,
    /// The environment variable, if its name does not follow from the flag.
    pub(crate) variable: Option<&'static str>,
    /// Placeholder of the value in help texts.
    pub(crate) value_name: &'static str,
    pub(crate) doc: &'static str,
    /// As on the command line.
    pub(crate) default: Option<&'static str>,
    pub(crate) kind: Kind,
    /// The allowed words with their meanings; empty if any value is allowed.
    pub(crate) choices: &'static [(&'static str, &'static str)],
}

impl Setting {
    /// The environment variable.
    pub(crate) fn variable(&self) -> String {
        match self.variable {
            Some(name) => name.to_owned(),
            None => format!("HOMEPORT_{}", self.flag.to_uppercase().replace('-', "_")),
        }
    }

    /// `table.key`, as in error messages.
    pub(crate) fn path(&self) -> String {
        format!("{}.{}", self.table, self.key)
    }

    /// The description in one line.
    pub(crate) fn description(&self) -> &'static str {
        self.doc.trim()
    }
}

/// Declares a section: a struct with a field for each setting, and the list of its settings.
macro_rules! section {
    (
        #[doc = $about:literal]
        $name:ident [$table:literal] {
            $(
                #[doc = $doc:literal]
                $key:ident: $type:ty = $default:expr, flag $flag:literal $value_name:ident
                    $(, variable $variable:literal)?;
            )+
        }
    ) => {
        #[doc = $about]
        #[derive(Debug, Clone)]
        pub(crate) struct $name {
            $(
                #[doc = $doc]
                pub(crate) $key: $type,
            )+
        }

        impl $name {
            pub(crate) const SECTION: $crate::config::setting::Section = $crate::config::setting::Section {
                table: $table,
                about: $about,
                settings: &[$(
                    $crate::config::setting::Setting {
                        table: $table,
                        key: stringify!($key),
                        flag: $flag,
                        variable: $crate::config::setting::section!(@variable $($variable)?),
                        value_name: stringify!($value_name),
                        doc: $doc,
                        default: $default,
                        kind: <$type as $crate::config::value::SettingValue>::KIND,
                        choices: <$type as $crate::config::value::SettingValue>::CHOICES,
                    },
                )+],
            };

            pub(crate) fn read(
                values: &$crate::config::layers::Values,
            ) -> Result<Self, $crate::config::layers::ConfigError> {
                Ok(Self { $($key: values.read($table, stringify!($key))?,)+ })
            }
        }
    };
    (@variable) => { None };
    (@variable $variable:literal) => { Some($variable) };
}

pub(crate) use section;
