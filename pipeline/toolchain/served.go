package toolchain

import "mlpromote.dev/mlpromote/registry/evidence"

// Served is a model server that runs one engine.
type Served struct {
	Driver   Driver
	Identity Identity
	Evidence evidence.Served // what reports say of the server
	// Fault is why none of its answers can count as the engine's; empty for nothing.
	Fault string
}
