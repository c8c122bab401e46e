package serving

import (
	"slices"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain/caserun"
)

// Config is how a server is started and asked. It is the option "server" of a job.
type Config struct {
	Name string `json:"name"`
	// Command is the program and its arguments. In arguments and in the values of Environment, {folder} is the exported folder,
	// {http} and {grpc} are free ports, and {model} is Model.
	Command     []string          `json:"command,omitempty"`
	Environment map[string]string `json:"environment,omitempty"`
	// URL is the address of a server that runs already; Command is empty then.
	URL string `json:"url,omitempty"`
	// Engine is the folder in the exported one in which the server finds the files of the engine.
	Engine   string   `json:"engine,omitempty"`
	Model    string   `json:"model"` // name under which the server has the model
	Protocol string   `json:"protocol"`
	HTTP     *Mapping `json:"http,omitempty"` // for [ProtocolHTTP]
	// ReadySeconds is how long the server may take until it is ready.
	ReadySeconds int `json:"readySeconds"`
	// Runtime is true if the server is the only runtime of the engine: then the engine is at fault where it does not get ready.
	Runtime bool `json:"runtime,omitempty"`
	// RepeatsIDs is true of a server that is known to repeat the ids of requests. An answer without one is refused then.
	RepeatsIDs bool `json:"repeatsIds,omitempty"`
	// Inputs and Outputs are the model's interface.
	Inputs  []caserun.Slot `json:"inputs"`
	Outputs []caserun.Slot `json:"outputs"`
}

// RoleServer is the role of the files in the exported folder that are not the engine's.
const RoleServer = "server"

// The protocols.
const (
	ProtocolREST      = "oip-rest"  // Open Inference Protocol over HTTP, with binary tensors where the server has them
	ProtocolGRPC      = "oip-grpc"  // Open Inference Protocol over gRPC, with raw tensors
	ProtocolTFServing = "tfserving" // REST API of TensorFlow Serving, predict
	ProtocolHTTP      = "http"      // any JSON over HTTP, as a [Mapping] describes it
)

// Protocols lists the protocols.
func Protocols() []string {
	return []string{ProtocolREST, ProtocolGRPC, ProtocolTFServing, ProtocolHTTP}
}

// Placeholders lists the names that stand in braces in arguments.
func Placeholders() []string { return []string{"folder", "http", "grpc", "model"} }

// ready is how long the server may take until it is ready.
func (c Config) ready() time.Duration { return time.Duration(c.ReadySeconds) * time.Second }

// input returns an input of the interface.
func (c Config) input(name string) (caserun.Slot, bool) {
	at := slices.IndexFunc(c.Inputs, func(v caserun.Slot) bool { return v.Name == name })
	if at < 0 {
		return caserun.Slot{}, false
	}
	return c.Inputs[at], true
}

// names lists the names of values.
func names(values []caserun.Slot) (all []string) {
	for _, v := range values {
		all = append(all, v.Name)
	}
	return all
}
