package toolchain

// Subject is what a failed job is about, as its driver reports it beside the message. Zero fields are unknown.
type Subject struct {
	Op     string `json:"op,omitempty"`     // the operator that caused it: "onnx.NonMaxSuppression"
	DType  string `json:"dtype,omitempty"`  // the type of numbers that the tool does not compute the operator in: "float16"
	Engine string `json:"engine,omitempty"` // run: its [RunEngine.ID]
	Shard  string `json:"shard,omitempty"`  // run: the name of an input with cases
	Row    int    `json:"row,omitempty"`    // with Case: its place in the shard, from 0 on
	Case   *int   `json:"case,omitempty"`   // run: its number among the cases of all shards, from 0 on
}

// Failure is an error of a driver with what it is about. It is in the chain of the errors of [Driver.Do], if the driver said more
// than a message. Callers decide by its fields, and never by the message.
type Failure struct {
	Subject
	Err error
}

// Error returns the message.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the error without the subject.
func (f *Failure) Unwrap() error { return f.Err }
