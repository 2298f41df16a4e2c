"""Items in few words: plain Python values as DynamoDB's JSON has them."""

import base64
import decimal


def typed(value):
    """One value: text, numbers, bytes, booleans, None, lists, dictionaries and sets of one kind."""
    if isinstance(value, bool):
        return {"BOOL": value}
    if value is None:
        return {"NULL": True}
    if isinstance(value, str):
        return {"S": value}
    if isinstance(value, int | decimal.Decimal):
        return {"N": str(value)}
    if isinstance(value, bytes):
        return {"B": base64.b64encode(value).decode()}
    if isinstance(value, list):
        return {"L": [typed(member) for member in value]}
    if isinstance(value, dict):
        return {"M": item(value)}
    if isinstance(value, frozenset | set):
        return typed_set(value)
    raise TypeError(f"DynamoDB has no such type: {value!r}")


def typed_set(members):
    """A set in DynamoDB's own order: texts and bytes by their bytes, numbers by their value."""
    kind = type(next(iter(members)))
    ordered = sorted(members, key=lambda member: member.encode() if kind is str else member)
    if kind is str:
        return {"SS": ordered}
    if kind is bytes:
        return {"BS": [base64.b64encode(member).decode() for member in ordered]}
    return {"NS": [str(member) for member in ordered]}


def item(attributes=None, /, **more):
    """An item, a key or the values of an expression."""
    return {name: typed(value) for name, value in {**(attributes or {}), **more}.items()}


def plain(value):
    """What `typed` was given, except that sets are Python's and numbers are exact decimals."""
    ((kind, content),) = value.items()
    match kind:
        case "NULL":
            return None
        case "N":
            return decimal.Decimal(content)
        case "B":
            return base64.b64decode(content)
        case "L":
            return [plain(member) for member in content]
        case "M":
            return {name: plain(member) for name, member in content.items()}
        case "SS":
            return set(content)
        case "NS":
            return {decimal.Decimal(member) for member in content}
        case "BS":
            return {base64.b64decode(member) for member in content}
        case _:
            return content
