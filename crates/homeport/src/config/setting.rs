//! What a setting is, and the macro that declares one. A declaration is the only place where a
//! setting's flag, variable, key in the file, default and description are written: the command line,
//! the reader of the file and the documents all work from it.

use crate::config::value::Kind;

/// Settings that belong together: a table of the configuration file.
#[derive(Debug)]
pub(crate) struct Concern {
    /// The table's name in the file.
    pub(crate) table: &'static str,
    pub(crate) about: &'static str,
    pub(crate) settings: &'static [Setting],
}

/// One setting as it was declared.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) table: &'static str,
    pub(crate) key: &'static str,
    /// Without the two dashes.
    pub(crate) flag: &'static str,
    /// The variable, where it is not called after the flag.
    pub(crate) variable: Option<&'static str>,
    /// What a value is called in the help.
    pub(crate) value_name: &'static str,
    pub(crate) doc: &'static str,
    /// As one would write it on the command line.
    pub(crate) default: Option<&'static str>,
    pub(crate) kind: Kind,
    /// The only words that are allowed, each with its meaning; empty when there is no such list.
    pub(crate) words: &'static [(&'static str, &'static str)],
}

impl Setting {
    /// The variable of the environment.
    pub(crate) fn variable(&self) -> String {
        match self.variable {
            Some(name) => name.to_owned(),
            None => format!("HOMEPORT_{}", self.flag.to_uppercase().replace('-', "_")),
        }
    }

    /// `table.key`, as error messages name it.
    pub(crate) fn path(&self) -> String {
        format!("{}.{}", self.table, self.key)
    }

    /// The description in one line.
    pub(crate) fn description(&self) -> &'static str {
        self.doc.trim()
    }
}

/// Declares a concern: a struct with a field for each setting, and the table of its settings.
macro_rules! concern {
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
            pub(crate) const CONCERN: $crate::config::setting::Concern = $crate::config::setting::Concern {
                table: $table,
                about: $about,
                settings: &[$(
                    $crate::config::setting::Setting {
                        table: $table,
                        key: stringify!($key),
                        flag: $flag,
                        variable: $crate::config::setting::concern!(@variable $($variable)?),
                        value_name: stringify!($value_name),
                        doc: $doc,
                        default: $default,
                        kind: <$type as $crate::config::value::SettingValue>::KIND,
                        words: <$type as $crate::config::value::SettingValue>::WORDS,
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

pub(crate) use concern;
