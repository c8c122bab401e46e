"""Which columns of a table a pipeline takes, where it selects them by name."""

from protocol import Refused

FLOAT, WHOLE, TEXT = "float32", "int64", "text"
LAST = ("passthrough", None)


class Column:
    """A column that the pipeline reads: its place in the table that it was fitted on, and its type."""

    def __init__(self, name, place, kind):
        self.name, self.place, self.kind = name, place, kind


def columns(estimator):
    """The columns in the order of the table; none if the estimator takes a matrix of numbers."""
    selector = by_name(estimator)
    if selector is None:
        return []
    names, kinds = list(selector.feature_names_in_), {}
    for name, transformer, _ in selector.transformers_:
        if isinstance(transformer, str) and transformer == "drop":
            continue
        for at, place in enumerate(selector._transformer_to_input_indices[name]):
            kind = kind_of(transformer, at, names[place])
            kinds.setdefault(place, set()).add(kind)
    for place, found in kinds.items():
        if TEXT in found and len(found) > 1:
            raise Refused("unsupported_format", f"column {names[place]!r} is used as text and as a number: want two columns")
    return [Column(str(names[place]), place, WHOLE if WHOLE in kinds[place] else kinds[place].pop()) for place in sorted(kinds)]


def by_name(estimator):
    """The ColumnTransformer that a table goes through first, if it was fitted on one with names."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import Pipeline

    while isinstance(estimator, Pipeline) and estimator.steps:
        estimator = estimator.steps[0][1]
    if isinstance(estimator, ColumnTransformer) and hasattr(estimator, "feature_names_in_") and hasattr(estimator, "transformers_"):
        return estimator
    return None


def by_place(selector):
    """Makes a ColumnTransformer that was fitted on a table take a matrix with the same columns."""
    places = selector._transformer_to_input_indices
    selector.transformers_ = [
        (name, transformer, places[name][0] if isinstance(chosen, str) else places[name])
        for name, transformer, chosen in selector.transformers_
    ]


def kind_of(transformer, at, column):
    """The type of a column, by what the first step that looks at its values has learned of it."""
    from sklearn.pipeline import FeatureUnion, Pipeline

    if isinstance(transformer, Pipeline):
        known = [kind_of(step, at, column) for _, step in transformer.steps if not passes(step)]
        return next((kind for kind in known if kind != FLOAT), FLOAT)
    if isinstance(transformer, FeatureUnion):
        known = [kind_of(member, at, column) for _, member in transformer.transformer_list if not passes(member)]
        return next((kind for kind in known if kind != FLOAT), FLOAT)
    if hasattr(transformer, "vocabulary_") or hasattr(transformer, "build_analyzer"):
        return TEXT
    if hasattr(transformer, "categories_"):
        return of_values(transformer.categories_[at], column)
    statistics = getattr(transformer, "statistics_", None)
    if statistics is not None and statistics.dtype.kind in "OU":
        return of_values(statistics[at : at + 1], column)
    return FLOAT


def passes(step):
    return step is None or isinstance(step, str)


def of_values(values, column):
    kind = values.dtype.kind
    if kind in "US" or (kind in "OT" and all(isinstance(v, str) for v in values)):
        return TEXT
    if kind in "iu":
        return WHOLE
    if kind == "f":
        return FLOAT
    odd = next((type(v).__name__ for v in values if not isinstance(v, str)), values.dtype.name)
    raise Refused("unsupported_format", f"column {column!r} has values of type {odd} among its categories: want text or numbers, and missing ones filled in")
