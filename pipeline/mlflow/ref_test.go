package mlflow

import (
	"testing"

	"mlpromote.dev/mlpromote/registry"
)

func TestParseRef(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Ref{
		"mlflow:models:/iris/3":             {Name: "iris", Version: "3"},
		"mlflow:models:/cat.schema.iris/12": {Name: "cat.schema.iris", Version: "12"},
		"mlflow:models:/iris@champion":      {Name: "iris", Alias: "champion"},
		"mlflow:models:/a b@x":              {Name: "a b", Alias: "x"},
		"mlflow:runs:/0a1b/model":           {Run: "0a1b", Path: "model"},
		"mlflow:runs:/0a1b/models/a":        {Run: "0a1b", Path: "models/a"},
	} {
		got, err := ParseRef(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%s: %+v (%s), error %v, want %+v", text, got, got, err, want)
		}
	}
	for _, text := range []string{
		"", "mlflow:", "mlflow:models:/", "mlflow:models:/iris", "mlflow:models:/iris/", "mlflow:models:/iris/0", "mlflow:models:/iris/Production",
		"mlflow:models:/iris/latest", "mlflow:models:/iris/3/x", "mlflow:models:/iris@", "mlflow:models:/a/b@x", "mlflow:models:/iris@a/b", "mlflow:models:/iris\n/3",
		"mlflow:runs:/", "mlflow:runs:/0a1b", "mlflow:runs:/0a1b/", "mlflow:runs:/0a1b/../x", "mlflow:runs:/0a1b//x", "mlflow:runs:/../x", "mlflow:s3://bucket/model",
		`mlflow:runs:/0a1b/a\b`,
	} {
		if got, err := ParseRef(text); registry.CodeOf(err) != registry.CodeInvalid {
			t.Errorf("%q: %+v, error %v, want CodeInvalid", text, got, err)
		}
	}
}

// The name of a file comes from a server, and stays a plain name.
func TestNameOfFile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ref  Ref
		want string
	}{
		{Ref{Name: "iris"}, "iris"}, {Ref{Name: "a b/../c"}, "a-b-..-c"}, {Ref{Name: "..."}, ""}, {Ref{Name: "-x"}, "x"}, {Ref{Run: "1", Path: "a/b"}, "b"}, {Ref{Name: "Ä"}, ""},
	} {
		if got := c.ref.base(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.ref, got, c.want)
		}
	}
}
