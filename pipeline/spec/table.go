package spec

import "fmt"

// Extensions of tables, which a folder of cases cannot have.
const (
	CSV     = ".csv"
	Parquet = ".parquet"
)

// FromTable says how a CSV or Parquet file becomes a folder of cases.
func FromTable(file string) string {
	return fmt.Sprintf("mlpromote cases record MODEL.onnx --to recorded --from %s writes its rows to the folder recorded/, which cases: can name", file)
}
