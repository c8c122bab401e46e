package spec

import (
	"fmt"
	"path"
	"strings"
)

// Extensions of tables, which a folder of cases cannot have.
const (
	CSV     = ".csv"
	Parquet = ".parquet" // docs/dependencies.md says why it is not read
)

// ParquetToCSV is a command that writes the table of a Parquet file as CSV, beside it.
func ParquetToCSV(file string) string {
	return fmt.Sprintf(`python3 -c "import pandas; pandas.read_parquet('%s').to_csv('%s', index=False)"`, file, withoutExtension(file)+CSV)
}

// FromTable says how a CSV or Parquet file becomes a folder of cases.
func FromTable(file string) string {
	convert := fmt.Sprintf("mlpromote cases record MODEL.onnx --to recorded --from %s writes its rows to the folder recorded/, which cases: can name",
		withoutExtension(file)+CSV)
	if strings.ToLower(path.Ext(file)) == Parquet {
		return "Parquet is not read; " + ParquetToCSV(file) + " makes CSV of it; then " + convert
	}
	return convert
}

func withoutExtension(file string) string { return strings.TrimSuffix(file, path.Ext(file)) }
