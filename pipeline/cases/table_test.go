package cases_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// Columns become inputs by their names: the features of one input, and inputs that take text.
func TestImportTableByName(t *testing.T) {
	t.Parallel()
	batch := validators.Dim{Symbol: "batch"}
	scores := validators.TensorInfo{Name: "scores", DType: tensor.Float32, Shape: []validators.Dim{batch, {Size: 2}},
		Kind: validators.KindScores, Names: []string{"stay", "leave"}}
	one := validators.Interface{V: validators.InterfaceVersion, Outputs: []validators.TensorInfo{scores},
		Inputs: []validators.TensorInfo{{Name: "x", DType: tensor.Float32, Shape: []validators.Dim{batch, {Size: 2}}, Names: []string{"age", "income"}}}}
	column := func(name string, dtype tensor.DType) validators.TensorInfo {
		return validators.TensorInfo{Name: name, DType: dtype, Shape: []validators.Dim{batch, {Size: 1}}}
	}
	several := validators.Interface{V: validators.InterfaceVersion, Outputs: []validators.TensorInfo{scores},
		Inputs: []validators.TensorInfo{column("city", validators.Text), column("age", tensor.Float32)}}
	texts := validators.Interface{V: validators.InterfaceVersion, Outputs: []validators.TensorInfo{scores},
		Inputs: []validators.TensorInfo{{Name: "x", DType: validators.Text, Shape: []validators.Dim{batch, {Size: 2}}}}}
	whole := validators.Interface{V: validators.InterfaceVersion, Outputs: []validators.TensorInfo{scores},
		Inputs: []validators.TensorInfo{column("age", tensor.Int64)}}
	for _, c := range []struct {
		name  string
		iface validators.Interface
		table string
		want  string // error, or the notes
		data  string // of the first input, as float32 or text
		label string // numbers of the classes
	}{
		{"features in another order", one, "income,note,age,label\n1000,x,30,leave\n2000,y,40,stay\n", `left out "note"`, "30 1000 40 2000", "1 0"},
		{"a feature without a column", one, "income,label\n1000,leave\n", `no column ["age"], which are features of the model`, "", ""},
		{"an unknown class", one, "income,age,label\n1,2,gone\n", `case 0 is "gone", which is no class of the model: want one of ["stay" "leave"]`, "", ""},
		{"text", several, "age,label,city,name\n30,stay,Zürich,a\n40,leave,\"Rome, IT\",b\n", `left out "name"`, "Zürich|Rome, IT", "0 1"},
		{"a number that is none", several, "age,city\nold,Rome\n", `:2: column "age": "old" is not a number`, "", ""},
		//nolint:dupword // two missing numbers
		{"missing numbers", one, "income,age,label\n,30,leave\n2000, ,stay\n", `column "income" has 1 empty field: missing numbers, NaN`, "30 NaN NaN 2000", "1 0"},
		{"a missing number beside text", several, "age,label,city\n,stay,Rome\n4,leave,Bern\n", `column "age" has 1 empty field`, "Rome|Bern", "0 1"},
		{"a missing whole number", whole, "age,label\n,stay\n", `:2: column "age": the field is empty, and labels and whole numbers cannot be missing`, "", ""},
		{"columns of text for one input", texts, "city,label,plan\nRome,stay,gold\nBern,leave,\n", "", "Rome|gold|Bern|", "0 1"},
		{"no column for an input", several, "age\n30\n", `nothing for the model's input "city"`, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "t.csv")
			if err := os.WriteFile(file, []byte(c.table), 0o600); err != nil {
				t.Fatal(err)
			}
			imported, err := cases.Import{Inputs: c.iface, File: file, To: filepath.Join(dir, "cases")}.Run()
			if c.data == "" {
				if err == nil || registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v, want CodeInvalid with %q", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if notes := strings.Join(imported.Notes, "\n"); !strings.Contains(notes, c.want) {
				t.Errorf("notes %q, want %q", notes, c.want)
			}
			shard, err := tensorfile.ReadFile(filepath.Join(dir, "cases", "cases-00000.safetensors"), tensorfile.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			first := shard[c.iface.Inputs[0].Name]
			got := numbersOf(first)
			if c.iface.Inputs[0].DType == validators.Text {
				texts, err := tensor.UnpackText(first)
				if err != nil {
					t.Fatal(err)
				}
				got = strings.Join(texts, "|")
			}
			if got != c.data || numbersOf(shard["label"]) != c.label {
				t.Errorf("input %q and labels %q, want %q and %q", got, numbersOf(shard["label"]), c.data, c.label)
			}
		})
	}
}

func numbersOf(t tensor.Tensor) string {
	var all []string
	for _, v := range t.Float64s() {
		all = append(all, strconv.FormatFloat(v, 'g', -1, 64))
	}
	return strings.Join(all, " ")
}
