package ingest

import (
	"path"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/spec"
)

// readProgram reads the program that a spec names for its metric, and puts its digest into the limit.
func (in *Inputs) readProgram(s *spec.Spec) error {
	if !in.Limits.Accuracy.ByProgram() {
		return nil
	}
	written := s.Limits.Accuracy.Program.Written
	program, err := specFiles{s.Files}.input(written, run.RoleProgram, path.Base(written), refuseCode)
	if err != nil {
		return inside("limits.accuracy.program", err)
	}
	limit := *in.Limits.Accuracy
	limit.Program = program.Digest
	in.Limits.Accuracy, in.Program = &limit, &program
	return nil
}
