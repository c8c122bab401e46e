package verify

import (
	"context"
	"errors"

	"mlpromote.dev/mlpromote/validators/parity"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// comparisonOfSome is how some of the cases are compared by the limits of a precision: relative to
// the spread of the golden outputs of all cases, and without the fill values of all.
func comparisonOfSome(ctx context.Context, v Session, precision string) (parity.Run, error) {
	limits := v.Limits.Precisions[precision].Outputs
	run := comparison(v, limits, v.Golden.Dir)
	itself := run
	itself.Labels = parity.Labels{}
	found, err := parity.Compare(ctx, itself)
	if errors.Is(err, tensor.ErrMismatch) {
		return run, nil // a mask that does not fit, of which the comparison with the engine tells
	}
	if err != nil {
		return run, err
	}
	run.Copies = nil // of numbers that some of the cases do not have
	for name, options := range run.Outputs {
		options.Spreads, options.Fill = found.Outputs[name].Spreads, found.Outputs[name].Fill
		run.Outputs[name] = options
	}
	return run, nil
}
