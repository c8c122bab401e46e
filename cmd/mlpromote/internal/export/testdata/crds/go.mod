module mlpromote.dev/mlpromote/crds

go 1.26.0
