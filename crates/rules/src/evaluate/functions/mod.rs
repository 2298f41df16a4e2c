//! The built-in functions: their names, numbers of arguments, and dispatch.

pub(crate) mod encode;
mod hash;
mod math;
mod message;
pub(crate) mod regular_expression;
mod text;
pub(crate) mod time;
mod time_fields;
mod time_format;
mod time_parse;
mod time_pattern;
mod values;

use std::borrow::Cow;

use crate::evaluate::{Context, Fault, Scope};
use crate::parse::tree::Call;
use crate::value::Value;

/// Maximum number of arguments of variadic functions.
const ARGUMENTS_MAX: usize = 255;

macro_rules! functions {
    ($($function:ident $name:literal $least:literal $most:expr;)*) => {
        /// A function of the language, except `cast`, whose arguments are not only expressions.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Function {
            $($function,)*
        }

        impl Function {
            #[cfg(test)]
            const ALL: &[Self] = &[$(Self::$function),*];

            /// The function with this lower-case name.
            pub(crate) fn by_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$function),)*
                    _ => None,
                }
            }

            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$function => $name,)*
                }
            }

            /// The minimum and maximum number of arguments.
            pub(crate) fn arity(self) -> (usize, usize) {
                match self {
                    $(Self::$function => ($least, $most),)*
                }
            }
        }
    };
}

functions! {
    Abs "abs" 1 1;
    AccountId "accountid" 0 0;
    Acos "acos" 1 1;
    Asin "asin" 1 1;
    Atan "atan" 1 1;
    Atan2 "atan2" 2 2;
    BitAnd "bitand" 2 2;
    BitNot "bitnot" 1 1;
    BitOr "bitor" 2 2;
    BitXor "bitxor" 2 2;
    Ceil "ceil" 1 1;
    Chr "chr" 1 1;
    ClientId "clientid" 0 0;
    Concat "concat" 0 ARGUMENTS_MAX;
    Cos "cos" 1 1;
    Cosh "cosh" 1 1;
    Decode "decode" 2 2;
    Encode "encode" 2 2;
    EndsWith "endswith" 2 2;
    Exp "exp" 1 1;
    Floor "floor" 1 1;
    Get "get" 2 2;
    GetMqttProperty "get_mqtt_property" 1 1;
    GetOrDefault "get_or_default" 1 2;
    GetUserProperties "get_user_properties" 0 1;
    IndexOf "indexof" 2 2;
    IsNull "isnull" 1 1;
    IsUndefined "isundefined" 1 1;
    Length "length" 1 1;
    Ln "ln" 1 1;
    Log "log" 1 1;
    Lower "lower" 1 1;
    Lpad "lpad" 2 2;
    Ltrim "ltrim" 1 1;
    Md2 "md2" 1 1;
    Md5 "md5" 1 1;
    Mod "mod" 2 2;
    Nanvl "nanvl" 2 2;
    NewUuid "newuuid" 0 0;
    NumBytes "numbytes" 1 1;
    ParseTime "parse_time" 2 3;
    Power "power" 2 2;
    Principal "principal" 0 0;
    Rand "rand" 0 0;
    RegexpMatches "regexp_matches" 2 2;
    RegexpReplace "regexp_replace" 3 3;
    RegexpSubstr "regexp_substr" 2 2;
    Remainder "remainder" 2 2;
    Replace "replace" 3 3;
    Round "round" 1 1;
    Rpad "rpad" 2 2;
    Rtrim "rtrim" 1 1;
    Sha1 "sha1" 1 1;
    Sha224 "sha224" 1 1;
    Sha256 "sha256" 1 1;
    Sha384 "sha384" 1 1;
    Sha512 "sha512" 1 1;
    Sign "sign" 1 1;
    Sin "sin" 1 1;
    Sinh "sinh" 1 1;
    SourceIp "sourceip" 0 0;
    SqlVersion "sql_version" 0 0;
    Sqrt "sqrt" 1 1;
    StartsWith "startswith" 2 2;
    Substring "substring" 2 3;
    Tan "tan" 1 1;
    Tanh "tanh" 1 1;
    TimeToEpoch "time_to_epoch" 2 2;
    Timestamp "timestamp" 0 0;
    Topic "topic" 0 1;
    TraceId "traceid" 0 0;
    Transform "transform" 3 3;
    Trim "trim" 1 1;
    Trunc "trunc" 2 2;
    Upper "upper" 1 1;
}

impl Function {
    /// The message for an AWS IoT function that only AWS can provide.
    pub(crate) fn unsupported_reason(name: &str) -> Option<&'static str> {
        Some(match name {
            "aws_lambda" => "a function that works without AWS: aws_lambda() calls AWS Lambda",
            "get_dynamodb" => "a function that reads nothing: get_dynamodb() reads a table",
            "get_registry_data" => {
                "a function that works without AWS: get_registry_data() asks AWS IoT's registry"
            }
            "get_secret" => {
                "a function that works without AWS: get_secret() asks AWS Secrets Manager"
            }
            "get_thing_shadow" => {
                "a function that works without AWS: get_thing_shadow() asks AWS IoT's device shadows"
            }
            "machinelearning_predict" => {
                "a function that works without AWS: machinelearning_predict() asks Amazon Machine Learning"
            }
            _ => return None,
        })
    }

    /// Whether the second argument is a regular expression.
    pub(crate) fn takes_pattern(self) -> bool {
        matches!(
            self,
            Self::RegexpMatches | Self::RegexpReplace | Self::RegexpSubstr
        )
    }
}

/// Calls a function. The number of arguments is already checked.
pub(crate) fn call(
    call: &Call,
    arguments: &[Cow<'_, Value>],
    scope: Scope<'_>,
    context: &mut Context<'_>,
) -> Result<Value, Fault> {
    use Function as F;
    let function = call.function;
    match function {
        F::Abs | F::Ceil | F::Floor | F::Round | F::Sign | F::Trunc => {
            math::rounding(function, arguments)
        }
        F::Acos
        | F::Asin
        | F::Atan
        | F::Cos
        | F::Cosh
        | F::Exp
        | F::Ln
        | F::Log
        | F::Sin
        | F::Sinh
        | F::Sqrt
        | F::Tan
        | F::Tanh => math::real(function, &arguments[0]),
        F::Atan2 | F::Power => math::real_pair(function, &arguments[0], &arguments[1]),
        F::BitAnd | F::BitOr | F::BitXor | F::BitNot => math::bits(function, arguments),
        F::Mod | F::Remainder => math::remainder(&arguments[0], &arguments[1]),
        F::Rand => Ok(math::random(context)),

        F::Chr
        | F::EndsWith
        | F::IndexOf
        | F::Length
        | F::Lower
        | F::Lpad
        | F::Ltrim
        | F::NumBytes
        | F::Replace
        | F::Rpad
        | F::Rtrim
        | F::StartsWith
        | F::Substring
        | F::Trim
        | F::Upper => text::call(function, arguments, context),
        F::RegexpMatches | F::RegexpReplace | F::RegexpSubstr => {
            regular_expression::call(function, call.pattern.as_ref(), arguments, context)
        }
        F::Md2 | F::Md5 | F::Sha1 | F::Sha224 | F::Sha256 | F::Sha384 | F::Sha512 => {
            hash::call(function, &arguments[0], context)
        }

        F::Encode => encode::encode(&arguments[0], context),
        F::Decode => encode::decode(&arguments[0], context),
        F::ParseTime => time::parse_time(arguments),
        F::TimeToEpoch => time::time_to_epoch(&arguments[0], &arguments[1]),

        F::Concat => values::concat(arguments, context),
        F::Get => values::get(&arguments[0], &arguments[1], context),
        F::GetOrDefault | F::Nanvl => values::first_or_second(arguments, context),
        F::IsNull => Ok(Value::Boolean(matches!(&*arguments[0], Value::Null))),
        F::IsUndefined => Ok(Value::Boolean(arguments[0].is_undefined())),
        F::Transform => values::transform(&arguments[1], &arguments[2], context),

        F::AccountId
        | F::ClientId
        | F::GetMqttProperty
        | F::GetUserProperties
        | F::NewUuid
        | F::Principal
        | F::SourceIp
        | F::SqlVersion
        | F::Timestamp
        | F::Topic
        | F::TraceId => message::call(function, arguments, scope.message, context),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documentation_lists_every_function() {
        let reference = include_str!("../../../../../docs/iot-sql.md");
        for function in Function::ALL {
            let name = function.name();
            assert_eq!(Function::by_name(name), Some(*function));
            let listed = reference.contains(&format!("`{name}`"))
                || reference.contains(&format!("`{name}("));
            assert!(listed, "docs/iot-sql.md does not list {name}");
        }
    }
}
