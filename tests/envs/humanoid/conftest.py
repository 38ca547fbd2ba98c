"""The packages that stand in for Isaac's are not tests, nor to be imported here."""

collect_ignore_glob = ["*_standin/*"]
