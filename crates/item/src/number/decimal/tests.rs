//! Checks decimals against simple arithmetic on digit strings, and on `i128` where it is wide
//! enough.

use super::*;
use crate::number::Number;

use proptest::prelude::*;

fn decimal(text: &str) -> Decimal {
    Decimal::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn shown(result: Result<Decimal, DecimalError>) -> String {
    result.map_or_else(|error| error.to_string(), |decimal| decimal.to_string())
}

#[test]
fn texts_round_trip_without_losing_digits() {
    for text in [
        "0",
        "-1",
        "0.5",
        "1500",
        "12345678901234567890123456789012345678",
        "0.00000000000000000000000000000000000001",
        "-99.99",
    ] {
        assert_eq!(decimal(text).to_string(), text);
    }
    assert_eq!(decimal("1E-50").to_string(), "1E-50");
    assert_eq!(decimal("1.25E-50").to_string(), "1.25E-50");
    assert_eq!(decimal("1.50e2").to_string(), "150");
    assert_eq!(decimal("007").to_string(), "7");
    assert_eq!(decimal("-0.0"), Decimal::ZERO);
}

#[test]
fn invalid_numbers_are_rejected() {
    for text in [
        "", "-", ".5", "5.", "1e", "1e+", "+1", "1_0", "--1", "0x1", "NaN", " 1", "1.2.3",
    ] {
        assert_eq!(
            Decimal::parse(text),
            Err(DecimalError::NotANumber),
            "{text}"
        );
    }
    for text in ["1E1000", "1E-1000", "1E99999999999999999999"] {
        assert_eq!(
            Decimal::parse(text),
            Err(DecimalError::OutOfRange),
            "{text}"
        );
    }
}

#[test]
fn digit_39_is_rounded_half_to_even() {
    let digits = "1234567890123456789012345678901234567";
    assert_eq!(
        decimal(&format!("{digits}85")).to_string(),
        format!("{digits}80")
    );
    assert_eq!(
        decimal(&format!("{digits}750")).to_string(),
        format!("{digits}800")
    );
    assert_eq!(
        decimal(&format!("{digits}8501")).to_string(),
        format!("{digits}9000")
    );
    let nines = "9".repeat(39);
    assert_eq!(decimal(&nines), decimal("1E39"));
    let long = format!("0.{}1", "3".repeat(60));
    assert_eq!(decimal(&long).to_string(), format!("0.{}", "3".repeat(38)));
}

#[test]
fn sums_of_distant_magnitudes_keep_the_larger() {
    assert_eq!(
        shown(decimal("1E300").add(&decimal("1E-300"))),
        format!("1{}", "0".repeat(300))
    );
    assert_eq!(shown(decimal("1E38").add(&decimal("-1"))), "9".repeat(38));
    assert_eq!(
        shown(decimal("1E39").subtract(&decimal("1"))),
        format!("1{}", "0".repeat(39))
    );
    assert_eq!(
        shown(decimal("9E999").add(&decimal("9E999"))),
        DecimalError::OutOfRange.to_string()
    );
}

#[test]
fn sums_of_overlapping_numbers_are_rounded() {
    let sum = decimal("1E60").add(&decimal("12345678901234567890123456789012345678"));
    let expected = decimal("1.0000000000000000000000123456789012346E60");
    assert_eq!(sum, Ok(expected));
}

/// Checks by multiplication that no 38-digit number is nearer to the quotient, and that ties go to
/// the even one.
fn assert_nearest(dividend: u128, divisor: u128) {
    let whole = |value| Decimal::normalised(false, value, 0).expect("in range");
    let quotient = whole(dividend).divide(&whole(divisor)).expect("a quotient");
    let spare = DIGITS_MAX - quotient.digits();
    let coefficient = quotient.coefficient() * pow10(spare);
    let places = (spare as i32 - quotient.exponent()).unsigned_abs();
    let room = DIGITS_MAX - digits(dividend);
    let drawn_out = Wide::product(
        dividend * pow10(places.min(room)),
        pow10(places.saturating_sub(room)),
    );
    let back = Wide::product(coefficient, divisor);
    let off = if drawn_out >= back {
        drawn_out.minus(back)
    } else {
        back.minus(drawn_out)
    };
    let twice = off.plus(off);
    assert!(twice <= Wide::new(divisor), "{dividend} / {divisor}");
    assert!(
        twice < Wide::new(divisor) || coefficient.is_multiple_of(2),
        "{dividend} / {divisor} lies between two numbers"
    );
}

#[test]
fn quotient_ties_go_to_even() {
    assert_nearest((1 << 76) * 10_001, 1 << 126);
    assert_nearest((1 << 76) * 10_003, 1 << 126);
    assert_nearest(10u128.pow(38) - 1, 2);
}

#[test]
fn quotients_are_rounded_half_to_even() {
    assert_eq!(
        shown(decimal("1").divide(&decimal("3"))),
        format!("0.{}", "3".repeat(38))
    );
    assert_eq!(
        shown(decimal("2").divide(&decimal("3"))),
        format!("0.{}7", "6".repeat(37))
    );
    assert_eq!(shown(decimal("1").divide(&decimal("8"))), "0.125");
    assert_eq!(
        shown(decimal("1E38").divide(&decimal("1E-38"))),
        format!("1{}", "0".repeat(76))
    );
    // One divided by a 38-digit number needs all spare digits of the dividend.
    let divisor = "9".repeat(38);
    let quotient = decimal("1").divide(&decimal(&divisor)).expect("a quotient");
    assert_eq!(quotient, decimal("1E-38"));
    assert_eq!(
        decimal("5").divide(&Decimal::ZERO),
        Err(DecimalError::DivisionByZero)
    );
}

#[test]
fn remainders_of_distant_magnitudes_are_exact() {
    // Modulo 7, 10^30 is 1 and 10^400 is 4, because the powers repeat after six.
    assert_eq!(shown(decimal("1E30").remainder(&decimal("7"))), "1");
    assert_eq!(shown(decimal("1E400").remainder(&decimal("7"))), "4");
    assert_eq!(shown(decimal("5").remainder(&decimal("1E300"))), "5");
    assert_eq!(shown(decimal("-5.5").remainder(&decimal("0.2"))), "-0.1");
}

#[test]
fn rounding_functions_differ() {
    for (text, floor, ceil, round, cut) in [
        ("1.5", "1", "2", "2", "1"),
        ("-1.5", "-2", "-1", "-2", "-1"),
        ("0.4", "0", "1", "0", "0"),
        ("-0.4", "-1", "0", "0", "0"),
        ("7", "7", "7", "7", "7"),
        ("1E-900", "0", "1", "0", "0"),
        ("-1E-900", "-1", "0", "0", "0"),
    ] {
        let number = decimal(text);
        assert_eq!(number.floor().to_string(), floor, "floor of {text}");
        assert_eq!(number.ceil().to_string(), ceil, "ceil of {text}");
        assert_eq!(number.round().to_string(), round, "round of {text}");
        assert_eq!(number.truncate(0).to_string(), cut, "truncate of {text}");
    }
}

fn small() -> impl Strategy<Value = (i64, u32)> {
    (any::<i64>(), 0u32..12)
}

fn scaled((value, places): (i64, u32)) -> Decimal {
    decimal(&format!("{value}e-{places}"))
}

/// Scales both numbers to integers of the same scale.
fn aligned(left: (i64, u32), right: (i64, u32)) -> (i128, i128, u32) {
    let places = left.1.max(right.1);
    let draw = |(value, own): (i64, u32)| i128::from(value) * 10i128.pow(places - own);
    (draw(left), draw(right), places)
}

proptest! {
    #[test]
    fn sums_products_and_remainders_agree_with_integers(left in small(), right in small()) {
        let (left_whole, right_whole, places) = aligned(left, right);
        let sum = decimal(&format!("{}e-{places}", left_whole + right_whole));
        prop_assert_eq!(scaled(left).add(&scaled(right)), Ok(sum));
        let product = i128::from(left.0) * i128::from(right.0);
        let product = decimal(&format!("{product}e-{}", left.1 + right.1));
        prop_assert_eq!(scaled(left).multiply(&scaled(right)), Ok(product));
        if right_whole != 0 {
            let rest = decimal(&format!("{}e-{places}", left_whole % right_whole));
            prop_assert_eq!(scaled(left).remainder(&scaled(right)), Ok(rest));
            let whole = decimal(&(left_whole / right_whole).to_string());
            prop_assert_eq!(scaled(left).divide_whole(&scaled(right)), Ok(whole));
        }
        prop_assert_eq!(scaled(left).cmp(&scaled(right)), left_whole.cmp(&right_whole));
    }

    #[test]
    fn quotients_are_the_nearest_numbers(
        dividend in 1u128..10u128.pow(38),
        dividend_cut in 0u32..37,
        divisor in 1u128..10u128.pow(38),
        divisor_cut in 0u32..37,
    ) {
        let cut = |value: u128, digits: u32| (value / pow10(digits)).max(1);
        assert_nearest(cut(dividend, dividend_cut), cut(divisor, divisor_cut));
        assert_nearest(dividend, divisor);
    }

    #[test]
    fn printed_numbers_parse_back(coefficient in any::<u128>(), exponent in -900i32..900, negative: bool) {
        let sign = if negative { "-" } else { "" };
        let number = decimal(&format!("{sign}{coefficient}e{exponent}"));
        prop_assert_eq!(decimal(&number.to_string()), number);
    }

    #[test]
    fn dynamodb_numbers_round_trip(coefficient in 0u128..10u128.pow(38), exponent in -160i32..80) {
        if let Ok(number) = Number::new(false, coefficient, exponent) {
            let there = Decimal::from(number);
            prop_assert_eq!(there.to_string(), decimal(&number.to_string()).to_string());
            prop_assert_eq!(Number::try_from(there), Ok(number));
        }
    }

    #[test]
    fn binary_numbers_round_trip(value in any::<f64>()) {
        match Decimal::from_f64(value) {
            Some(decimal) => prop_assert_eq!(decimal.to_f64(), value),
            None => prop_assert!(!value.is_finite()),
        }
    }

    #[test]
    fn parsing_never_panics(text in "[-+0-9.eE]{0,60}") {
        if let Ok(number) = Decimal::parse(&text) {
            prop_assert_eq!(decimal(&number.to_string()), number);
        }
    }
}
