package format_test

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
)

// What frameworks write passes, and a file that is cut is said to be cut.
func TestGateReadsStructure(t *testing.T) {
	t.Parallel()
	const key = "L\x00\x00\x00\x00\x00\x00\x00"
	whole := map[string]string{
		"json":     `{"learner":{"attributes":{"note":"a \"quoted\" {[ text"},"trees":[[1.5e3,null],[]]},"version":[3,4,1]}`,
		"ubjson":   "{" + key + "\x07learner{" + key + "\x01a[$d#" + key + "\x02\x00\x00\x00\x00\x00\x00\x00\x00" + key + "\x01bS" + key + "\x02ok" + key + "\x01c[#i\x02TZ" + key + "\x01d[i\x01U\x02]" + key + "\x01e{$i#i\x01i\x01f\x07}" + key + "\x07version[#i\x03i\x03i\x04i\x01}",
		"lightgbm": "tree\nversion=v4\nnum_class=1\n\nTree=0\nnum_leaves=1\nleaf_value=1\n\nend of trees\n\nparameters:\n",
		"pmml":     "<?xml version=\"1.0\"?>\n<!-- a --->\n<PMML version='4.4'><a b=\"x > y\"/><![CDATA[ <a> ]]]></PMML>\n",
	}
	for name, text := range whole {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := gate(false, []byte(text)); err != nil {
				t.Fatal(err)
			}
			at := strings.LastIndexAny(strings.TrimSpace(text), "}>")
			if name == "lightgbm" {
				at = strings.Index(text, "of trees")
			}
			err := gate(false, []byte(text[:at]))
			if !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), "ends") || !strings.Contains(err.Error(), "copy or save it again") {
				t.Errorf("cut: error %v, want %s that says where it ends and what to do", err, registry.CodeInvalid)
			}
		})
	}
}
