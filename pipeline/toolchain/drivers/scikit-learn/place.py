"""Where in a pipeline a part is, for messages."""

from columns import TEXT, kind_of, passes

NAMED = 8  # columns that a message names


def place_of(estimator, op, converts):
    """The steps and columns of the part whose class is op, or else of the only part that converts refuses alone; empty if that is not known,
    and for an estimator that is no pipeline."""
    leaves = list(parts(estimator, (), None))
    found = [p for p in leaves if p[0] and op == class_of(p[1])] if op else []
    if not found and len(leaves) > 1:
        found = [p for p in leaves if not converts(p[1], kinds_of(p[1], p[2]))]
    if len(found) != 1 or not found[0][0]:
        return ""
    steps, _, columns = found[0]
    text = ", ".join(steps)
    if columns:
        more = f" and {len(columns) - NAMED} more" if len(columns) > NAMED else ""
        text += f", of column{'' if len(columns) == 1 else 's'} {', '.join(repr(str(c)) for c in columns[:NAMED])}{more}"
    return text


def parts(part, steps, columns):
    """The parts that are no composition, each with the steps to it and the columns that its values come from; None: not known."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import FeatureUnion, Pipeline

    if isinstance(part, Pipeline):
        for name, step in part.steps:
            if not passes(step):
                yield from parts(step, (*steps, f"step {name!r}"), columns)
    elif isinstance(part, FeatureUnion):
        for name, member in part.transformer_list:
            if not passes(member):
                yield from parts(member, (*steps, f"transformer {name!r}"), columns)
    elif isinstance(part, ColumnTransformer):
        names = list(getattr(part, "feature_names_in_", range(part.n_features_in_)))
        for name, transformer, _ in part.transformers_:
            if not passes(transformer):
                yield from parts(transformer, (*steps, f"transformer {name!r}"), [names[i] for i in part._transformer_to_input_indices[name]])
    else:
        yield steps, part, columns


def kinds_of(part, columns):
    """The types of the columns that a part takes alone; text if it has learned of text."""
    alike = columns and getattr(part, "n_features_in_", 0) == len(columns)  # else an earlier step made others of them
    known = [kind_of(part, i, c) for i, c in enumerate(columns)] if alike else []
    return known[0] if known and all(k == TEXT for k in known) else "float32"


def class_of(part):
    return f"{type(part).__module__}.{type(part).__qualname__}"
