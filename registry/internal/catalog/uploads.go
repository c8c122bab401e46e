package catalog

import "mlpromote.dev/mlpromote/registry"

// NewUploadVersion is the version of an upload that nobody swapped. It has no bytes anywhere.
const NewUploadVersion = 1

// ChangeUpload changes the row of an upload at a version, or returns why there is none. change
// returns the number of rows that it changed. version reads the version that the row has now.
func ChangeUpload(id string, change, version func() (int64, error)) error {
	if n, err := change(); n > 0 || err != nil {
		return err
	}
	if _, err := version(); err != nil {
		return err
	}
	return registry.Errorf(registry.CodeConflict,
		"upload %s: another request continued it; query its offset and continue there", id)
}

// NotNull returns a copy of b that is not nil, because a column would store nil as NULL.
func NotNull(b []byte) []byte { return append([]byte{}, b...) }
