// Package filegate connects the gate for pushed and loaded parts with the format check.
package filegate

import (
	"mlpromote.dev/mlpromote/registry/gate"
	"mlpromote.dev/mlpromote/validators/format"
)

// Inspect looks at the bytes of a file of a part that is pushed or loaded.
func Inspect(f gate.File) error {
	return format.Gate{NativeCode: f.NativeCode, Beside: f.Beside}.Check(f.Path, f.Content, f.Size)
}
