// Package ingest reads what a spec names: the model, imported if it is not ONNX, cases, calibration, assets and students. It refuses what
// no build can use.
package ingest
