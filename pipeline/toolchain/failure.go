package toolchain

// Subject locates a failure in its job: the operator, the engine and the case. The driver reports it. Zero fields are unknown.
type Subject struct {
	Op     string `json:"op,omitempty"`     // the operator that caused it: "onnx.NonMaxSuppression"
	DType  string `json:"dtype,omitempty"`  // the type of numbers that the tool does not compute the operator in: "float16"
	Engine string `json:"engine,omitempty"` // run: its [RunEngine.ID]
	Shard  string `json:"shard,omitempty"`  // run: the name of an input with cases
	Row    int    `json:"row,omitempty"`    // with Case: its place in the shard, from 0 on
	Case   *int   `json:"case,omitempty"`   // run: its number among the cases of all shards, from 0 on
}

// Failure adds a subject to an error of a driver. Errors of [Driver.Do] wrap it, so find it with errors.As. Callers decide by its
// fields and never by the message.
type Failure struct {
	Subject
	Err error
}

// Error returns the message.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the error without the subject.
func (f *Failure) Unwrap() error { return f.Err }
