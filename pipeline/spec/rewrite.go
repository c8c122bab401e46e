package spec

import (
	"os"

	"mlpromote.dev/mlpromote/registry/atomicfile"
	"mlpromote.dev/mlpromote/registry/strictyaml"
)

// Rewrite replaces the text of a spec in a file, which keeps its mode. A reader sees the old text or the new one.
func Rewrite(file string, change func(text []byte) ([]byte, error)) error {
	text, err := strictyaml.ReadFile(file)
	if err != nil {
		return err
	}
	changed, err := change(text)
	if err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	return atomicfile.Write(file, changed, info.Mode())
}
