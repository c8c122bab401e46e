//go:build !linux

package child

// restrict does nothing where a process cannot bound another: there the wall clock
// alone bounds a job.
func restrict(int, Budget) error { return nil }
