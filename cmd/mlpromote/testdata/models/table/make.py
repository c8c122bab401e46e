"""Makes churn.skops and churn.csv, with pandas and the packages of the scikit-learn toolchain: a pipeline
over a table that chooses columns by their names and by their type, and rows of that table."""

import zipfile

import numpy as np
import pandas as pd
import skops.io
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler


def table(count, seed):
    random = np.random.default_rng(seed)
    rows = pd.DataFrame({
        "age": random.integers(18, 80, count),
        "city": random.choice(["Berlin", "Paris", "Zürich"], count),
        "plan": random.choice(["basic", "pro"], count),
        "months": random.integers(1, 4, count) * 12,
        "income": random.normal(50000, 20000, count).round(2),
    })
    gone = (rows.age > 45) & (rows.city != "Paris") | (rows.plan == "basic") & (rows.income < 40000)
    return rows, np.where(gone, "left", "stayed")


rows, answers = table(600, 1)
scaled = Pipeline([("fill", SimpleImputer()), ("scale", StandardScaler())])
columns = ColumnTransformer([
    ("numbers", scaled, make_column_selector(pattern="age|income", dtype_include=np.number)),
    ("city", OneHotEncoder(handle_unknown="ignore"), ["city"]),
    ("months", OneHotEncoder(handle_unknown="ignore"), ["months"]),
    ("plan", OrdinalEncoder(), ["plan"]),
])
model = Pipeline([("columns", columns), ("model", LogisticRegression(max_iter=500))]).fit(rows, answers)
skops.io.dump(model, "churn.skops", compression=zipfile.ZIP_DEFLATED, compresslevel=9)
rows, answers = table(60, 2)
rows.insert(0, "customer", [f"C{n:04d}" for n in range(len(rows))])  # which the model does not take
rows["label"] = answers
rows.iloc[:, ::-1].to_csv("churn.csv", index=False)  # the order of columns does not matter
