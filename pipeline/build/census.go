package build

import (
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// maxOperators is how many kinds of operators a census has at most. Custom operators are as many as their author likes.
const maxOperators = 500

// census counts the operators of an engine whose files are an ONNX graph, or else of the ONNX graph that its compiler took. Nil: it is
// neither, or has too many kinds. It is said in passing, so it is no reason to fail.
func census(profile toolchain.Profile, files []toolchain.OutputFile, graph []toolchain.Input) *evidence.Census {
	for _, f := range files {
		if f.Name == profile.Entry && profile.Format == "onnx" {
			return countOperators(evidence.CensusOfEngine, f.Path)
		}
	}
	for _, in := range graph {
		if in.Role == toolchain.RoleModel && in.Name == run.ModelFile {
			return countOperators(evidence.CensusOfGraph, in.Path)
		}
	}
	return nil
}

func countOperators(of, path string) *evidence.Census {
	m, err := run.ReadGraph(path)
	if err != nil || len(m.Ops) > maxOperators {
		return nil
	}
	return &evidence.Census{Of: of, Counts: m.Ops}
}
