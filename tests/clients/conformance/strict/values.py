"""Values, and the texts that AWS has for what is wrong with them."""

import base64

ITEM_BYTES_MAX = 409_600

OVERFLOW = "Number overflow. Attempting to store a number with magnitude larger than supported range"
UNDERFLOW = "Number underflow. Attempting to store a number with magnitude smaller than supported range"
NOT_NUMERIC = "The parameter cannot be converted to a numeric value"
TOO_PRECISE = "Attempting to store more than 38 significant digits in a Number"
TOO_DEEP = "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit"
INVALID = "One or more parameter values were invalid: "
MISMATCH = "The provided key element does not match the schema"
EMPTY_TEXT_KEY = "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: pk"
EMPTY_BYTES_KEY = "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty binary value. Key: pk"
TOO_LARGE = "Item size has exceeded the maximum allowed size"
UPDATE_TOO_LARGE = "Item size to update has exceeded the maximum allowed size"


def S(text):
    return {"S": text}


def N(number):
    return {"N": str(number)}


def B(data):
    return {"B": base64.b64encode(data).decode()}


def key(pk, sk=None):
    return {"pk": S(pk)} if sk is None else {"pk": S(pk), "sk": S(sk)}


def one(text):
    """A text as the newer validation gives it."""
    return f"1 validation error detected: {text}"


def violation(value, path, constraint):
    return f"Value '{value}' at '{path}' failed to satisfy constraint: {constraint}"


def for_value(text, name):
    """A text as the older validation wraps it for a value of an expression."""
    return f"ExpressionAttributeValues contains invalid value: {text} for key {name}"


def deep(levels, leaf=None):
    """A value within so many maps."""
    value = leaf or S("leaf")
    for _ in range(levels):
        value = {"M": {"n": value}}
    return value


def sized_item(item, size):
    """The item with an attribute `p` that makes it this large; its other values are texts."""
    rest = sum(len(name) + len(value["S"]) for name, value in item.items()) + len("p")
    return {**item, "p": S("x" * (size - rest))}
