package toolchaintest

import (
	"context"
	"errors"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/conformance"
)

// Conformance describes a driver that compiles and runs, with inputs for it.
type Conformance struct {
	*conformance.Subject
	// New creates the driver anew, as another process would.
	New func() toolchain.Driver
}

// TestDriver checks the contract of every driver, row by row of [conformance.Checks].
func TestDriver(t *testing.T, c Conformance) {
	t.Helper()
	of := c.Subject
	of.New = func(context.Context) (toolchain.Driver, error) { return c.New(), nil }
	of.Validate, of.Scratch = ValidateSchema, t.TempDir()
	if of.Profile.Reproducible == "" {
		t.Error("the profile does not say how reproducible engines are")
	}
	for _, check := range conformance.Checks() {
		t.Run(check.Name, func(t *testing.T) {
			t.Parallel()
			err := check.Run(t.Context(), of)
			switch _, skipped := errors.AsType[conformance.Skipped](err); {
			case skipped:
				t.Log(err)
			case err != nil:
				t.Errorf("want that %s: %v", check.Promise, err)
			}
		})
	}
}
