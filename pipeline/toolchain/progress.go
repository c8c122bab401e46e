package toolchain

import "context"

type progressKey struct{}

// WithProgress returns a context whose jobs tell how many of their runs are done, as far as their
// drivers say so. tell is called about once a second, from other goroutines.
func WithProgress(ctx context.Context, tell func(done, of int)) context.Context {
	return context.WithValue(ctx, progressKey{}, tell)
}

// ProgressOf returns what to tell about the jobs of a context, or nil.
func ProgressOf(ctx context.Context) func(done, of int) {
	tell, _ := ctx.Value(progressKey{}).(func(done, of int))
	return tell
}
