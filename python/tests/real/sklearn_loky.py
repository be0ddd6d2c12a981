"""A grid search of scikit-learn over two loky processes."""

import numpy
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV

if __name__ == "__main__":
    made = numpy.random.default_rng(0)
    data, labels = made.normal(size=(300, 8)), made.integers(0, 2, 300)
    search = GridSearchCV(
        RandomForestClassifier(random_state=0), {"n_estimators": [5, 10], "max_depth": [2, 4]}, n_jobs=2
    )
    search.fit(data, labels)
    print("best", search.best_params_, round(search.best_score_, 3))
