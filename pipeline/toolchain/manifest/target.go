package manifest

import (
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// SetFields sets the fields of a target that a manifest can name, such as accelerator.arch. Errors: CodeInvalid for another
// field.
func SetFields(t *artifact.Target, values map[string]string) error {
	for _, name := range registry.SortedKeys(values) {
		value := values[name]
		if strings.HasPrefix(name, "accelerator.") && t.Accelerator == nil {
			t.Accelerator = &artifact.TargetAccelerator{}
		}
		switch name {
		case "cpu.arch":
			t.CPU.Arch = value
		case "cpu.level":
			t.CPU.Level = value
		case "cpu.features":
			t.CPU.Features = slices.Collect(strings.SplitSeq(value, ","))
		case "accelerator.vendor":
			t.Accelerator.Vendor = value
		case "accelerator.arch":
			t.Accelerator.Arch = value
		case "accelerator.product":
			t.Accelerator.Product = value
		default:
			return registry.Errorf(registry.CodeInvalid, "unknown field %q%s: want some of %s", name,
				registry.Suggest(name, fieldNames()), strings.Join(fieldNames(), ", "))
		}
	}
	return nil
}
