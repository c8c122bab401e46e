package printing

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// Load is a line on how nodes load an engine; empty where its runtime decides.
func Load(label string, load *artifact.LoadProfile) string {
	if load == nil {
		return ""
	}
	required := ""
	if load.Required {
		required = " (required)"
	}
	return fmt.Sprintf("%s is loaded with %s%s\n", ui.Plain(label), ui.Plain(load.String()), required)
}

// Options writes options as name=value, in order; none as "-". Lists and maps are JSON, so
// that a reader sees the end of each name in them.
func Options(o map[string]any) string {
	if len(o) == 0 {
		return "-"
	}
	text := ""
	for _, name := range slices.Sorted(maps.Keys(o)) {
		value := fmt.Sprint(o[name])
		if kind := reflect.ValueOf(o[name]).Kind(); kind == reflect.Map || kind == reflect.Slice {
			if written, err := json.Marshal(o[name]); err == nil {
				value = string(written)
			}
		}
		text += " " + name + "=" + value
	}
	return text[1:]
}
