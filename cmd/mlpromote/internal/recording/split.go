package recording

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/registry"
)

// Split is the flags of cases split.
type Split struct {
	cases, calibration, label string
	count                     int
	seed                      uint64
}

// Define adds the flags to a command.
func (s *Split) Define(c *cobra.Command) {
	c.Flags().StringVar(&s.cases, "cases", "", "folder for the cases, new or empty")
	c.Flags().StringVar(&s.calibration, "calibration", "", "folder for calibration, new or empty")
	c.Flags().IntVar(&s.count, "count", 0, "cases with different inputs for calibration")
	c.Flags().StringVar(&s.label, "label", "", "tensor that has the labels, if it is not label or labels")
	c.Flags().Uint64Var(&s.seed, "seed", 1, "the same seed chooses the same cases")
}

// Run divides the cases of a folder.
func (s *Split) Run(u *ui.UI, folder string) error {
	if s.count < 1 {
		return registry.Errorf(registry.CodeInvalid, "--count %d: want at least 1", s.count)
	}
	same, err := sameFolder(s.cases, s.calibration)
	if err == nil && same {
		err = registry.Errorf(registry.CodeInvalid, "--cases and --calibration are both %s: want two folders", s.cases)
	}
	if err != nil {
		return err
	}
	divided, err := cases.Split{From: folder, Cases: s.cases, Calibration: s.calibration,
		Count: s.count, Seed: s.seed, IsInput: cases.IsInput(s.label)}.Run()
	if err != nil {
		return err
	}
	if divided.Together > 0 {
		u.Note("%s more in %s, with the inputs of one that was chosen", registry.Count(divided.Together, "case"), s.calibration)
	}
	u.Note("wrote %s to %s and %d to %s; in the spec: cases: {path: %s/} and calibration: {path: %s/}", registry.Count(divided.Cases, "case"), s.cases,
		divided.Calibration, s.calibration, filepath.Base(s.cases), filepath.Base(s.calibration))
	return u.Result(s.cases+"\n"+s.calibration, divided)
}

func sameFolder(a, b string) (bool, error) {
	a, err := filepath.Abs(a)
	if err != nil {
		return false, err
	}
	b, err = filepath.Abs(b)
	return a == b, err
}
