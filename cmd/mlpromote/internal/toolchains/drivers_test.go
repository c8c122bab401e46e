package toolchains

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
)

// Before gigabytes are installed, people learn that the Python that they have will do.
func TestLargeInstall(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"torch", "torch-inductor"} {
		source, err := drivers.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		got := largeInstall(source)
		for _, want := range []string{"torch is not installed, and takes 5.5 GiB", "CPUs alone are not there", "mlpromote toolchain install torch --python PATH"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q, want %q in it", name, got, want)
			}
		}
	}
	for _, name := range drivers.Names() {
		source, err := drivers.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		if large := source.Installed > 4<<10; large != (source.Large != "") {
			t.Errorf("%s takes %d MiB, and has the reason %q for it", source.Name, source.Installed, source.Large)
		}
	}
}
