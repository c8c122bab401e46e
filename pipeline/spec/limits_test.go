package spec_test

import "testing"

// per_channel alone is enough to say of an output, for instance to turn a preset's off.
func TestPerChannelAlone(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"true", "false"} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			outputs := "{outputs: {boxes: {per_channel: " + value + "}}}"
			s, err := load(t, small+"limits: {outputs: {boxes: {per_channel: "+value+"}}, precisions: {int8: "+outputs+"}}\n")
			if err != nil {
				t.Fatal(err)
			}
			o := s.LimitOverrides()
			for where, got := range map[string]*bool{"outputs": o.Outputs["boxes"].PerChannel, "precisions": o.Precisions["int8"]["boxes"].PerChannel} {
				if got == nil || *got != (value == "true") {
					t.Errorf("%s: per_channel is %v, want %s", where, got, value)
				}
			}
		})
	}
}
