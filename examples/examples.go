// Package examples has the example models that mlpromote demo builds.
package examples

import "embed"

// Files are the folders of this one that the demo uses: specs, models and cases, without what trained them.
//
//go:embed bad/broken-calibration/calibration bad/impossible-node
//go:embed digits/mlpromote.yaml digits/digits.onnx digits/cases digits/calibration
//go:embed iris/mlpromote.yaml iris/iris.safetensors iris/cases
//go:embed text/mlpromote.yaml text/tickets.onnx text/cases text/vocab.txt text/labels.txt
var Files embed.FS
