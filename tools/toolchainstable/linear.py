"""Trains a pipeline of scikit-learn that scales measurements and tells wines apart by a linear model, and writes it.

linear.py FILE.skops

The wines that it sees are those that the forest of examples/wine saw, so the cases there are new to it.
"""

import sys

import skops.io
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

rows, cultivars = load_wine(return_X_y=True)
seen, _, taught, _ = train_test_split(rows.astype("float32"), cultivars.astype("int64"), test_size=60, stratify=cultivars, random_state=7)
skops.io.dump(make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(seen, taught), sys.argv[1])
