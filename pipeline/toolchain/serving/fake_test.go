package serving

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// fakeName is the first argument of this test program when it is a server.
const fakeName = "fake-server"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == fakeName {
		if err := serveFake(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// fake is a server of a model y = factor * x, z = x, for float32 of any length. The factor is the content of the file of the engine.
// Each fault is what a real server or its configuration gets wrong.
type fake struct {
	folder, file string
	faults       []string
	factor       float32
	cache        sync.Map // answers, by the numbers of the input
	answered     atomic.Int64
}

func (f *fake) has(fault string) bool { return slices.Contains(f.faults, fault) }

// serveFake serves the folder, at the port of HTTP and of gRPC: ARGUMENTS are folder, file of the engine below it, ports and faults.
func serveFake(arguments []string) error {
	f := &fake{folder: arguments[0], file: arguments[1], faults: arguments[4:]}
	if err := f.load(); err != nil {
		return err
	}
	if f.has("writes") {
		if err := os.WriteFile(filepath.Join(f.folder, "compiled"), []byte("x"), 0o600); err != nil {
			return err
		}
	}
	if f.has("once") { // it leaves a lock behind
		lock, err := os.OpenFile(os.Getenv("FAKE_LOCK"), os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		if err := lock.Close(); err != nil {
			return err
		}
	}
	if f.has("hangs") {
		fmt.Fprintln(os.Stderr, "hangs")
		select {}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+arguments[3])
	if err != nil {
		return err
	}
	calls := grpc.NewServer(grpc.ForceServerCodec(bytesCodec{}), grpc.UnknownServiceHandler(f.call))
	go func() { _ = calls.Serve(listener) }()
	server := &http.Server{Addr: "127.0.0.1:" + arguments[2], Handler: f.routes(), ReadHeaderTimeout: time.Minute}
	return server.ListenAndServe()
}

// load reads the engine.
func (f *fake) load() error {
	file := f.file
	if f.has("stale") { // a copy from before
		file = "old/factor"
	}
	text, err := os.ReadFile(filepath.Join(f.folder, file))
	if err != nil {
		return err
	}
	factor, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 32)
	f.factor = float32(factor)
	return err
}

// compute returns the outputs of a case.
func (f *fake) compute(x []float32) (y, z []float32) {
	if f.has("pads") { // to a batch of four
		x = append(slices.Clone(x), make([]float32, 4)...)
	}
	y, z = make([]float32, len(x)), slices.Clone(x)
	for i, v := range x {
		y[i] = f.factor * v
	}
	if f.has("swapped") {
		y, z = z, y
	}
	return y, z
}

func (f *fake) routes() http.Handler {
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("GET /v2", func(w http.ResponseWriter, _ *http.Request) {
		extensions := []string{"binary_tensor_data"}
		if f.has("json") {
			extensions = nil
		}
		answer(w, map[string]any{"name": "fake", "version": "1.2.3", "extensions": extensions})
	})
	mux.HandleFunc("GET /v2/models/m/ready", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /v2/models/m", func(w http.ResponseWriter, _ *http.Request) {
		datatype, versions := "FP32", []string{"1"}
		if f.has("dtype") {
			datatype = "FP64"
		}
		if f.has("versions") {
			versions = []string{"1", "2"}
		}
		tensors := func(names ...string) (all []Told) {
			for _, name := range names {
				all = append(all, Told{name, datatype, []int64{-1}})
			}
			return all
		}
		answer(w, map[string]any{"name": "m", "versions": versions, "inputs": tensors("x"), "outputs": tensors("y", "z")})
	})
	mux.HandleFunc("POST /v2/models/m/infer", f.infer)
	mux.HandleFunc("POST /v2/models/other/infer", func(w http.ResponseWriter, r *http.Request) {
		other := &fake{factor: f.factor}
		other.infer(w, r)
	})
	mux.HandleFunc("GET /v1/models/m", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"model_version_status": []any{map[string]any{"version": "1", "state": "AVAILABLE"}}})
	})
	mux.HandleFunc("POST /v1/models/{call}", func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			Inputs struct{ X []float32 }
		}
		_ = json.NewDecoder(r.Body).Decode(&request)
		y, z := f.compute(request.Inputs.X)
		answer(w, map[string]any{"outputs": map[string]any{"y": y, "z": z}})
	})
	return mux
}

// infer answers by the Open Inference Protocol.
func (f *fake) infer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	head := body
	if n, err := strconv.Atoi(r.Header.Get(lengthHeader)); err == nil {
		head = body[:n]
	}
	var request restMessage
	if err := json.Unmarshal(head, &request); err != nil || len(request.Inputs) != 1 {
		http.Error(w, `{"error": "want one input"}`, http.StatusBadRequest)
		return
	}
	in := tensor.Tensor{DType: tensor.Float32, Shape: request.Inputs[0].Shape, Data: body[len(head):]}
	if len(in.Data) == 0 {
		if in, err = fromJSON(slotX, request.Inputs[0].Data, in.Shape); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	id := request.ID
	if f.has("caches") { // by the first number alone, as a proxy that looks at less than the whole request
		earlier, found := f.cache.LoadOrStore(string(in.Data[:4]), id)
		if found {
			id, _ = earlier.(string)
		}
	}
	if f.has("forgets") && f.answered.Add(1) > 1 { // as a cache that takes the ids out
		id = ""
	}
	if f.has("elsewhere") {
		http.Redirect(w, r, "/v2/models/other/infer", http.StatusTemporaryRedirect)
		return
	}
	if f.has("fails") && int64(in.Float64(0)) == 3 {
		http.Error(w, `{"error": "out of memory"}`, http.StatusInternalServerError)
		return
	}
	var x []float32
	for _, v := range in.Float64s() {
		x = append(x, float32(v))
	}
	y, z := f.compute(x)
	response := restMessage{ID: id}
	var tail []byte
	for i, values := range [][]float32{y, z} {
		out := restTensor{Name: []string{"y", "z"}[i], Datatype: "FP32", Shape: []int64{int64(len(values))}}
		if f.has("axis") {
			out.Shape = append([]int64{1}, out.Shape...)
		}
		if f.has("json") {
			format := "%v"
			if f.has("short") {
				format = "%.3g"
			}
			var numbers []string
			for _, v := range values {
				numbers = append(numbers, fmt.Sprintf(format, v))
			}
			out.Data = json.RawMessage("[" + strings.Join(numbers, ",") + "]")
		} else {
			size := int64(4 * len(values))
			out.Parameters = &restParameters{BinaryDataSize: &size}
			for _, v := range values {
				tail = binary.LittleEndian.AppendUint32(tail, math.Float32bits(v))
			}
		}
		response.Outputs = append(response.Outputs, out)
	}
	text, _ := json.Marshal(response)
	if len(tail) > 0 {
		w.Header().Set(lengthHeader, strconv.Itoa(len(text)))
	}
	_, _ = w.Write(append(text, tail...))
}

// call answers over gRPC.
func (f *fake) call(_ any, stream grpc.ServerStream) error {
	var request []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	method, _ := grpc.MethodFromServerStream(stream)
	var response []byte
	described := func(name string, shape ...int64) []byte {
		message := appendText(appendText(nil, 1, name), 2, "FP32")
		for _, size := range shape {
			message = append(message, 3<<3) // not packed, as some write it
			message = binary.AppendUvarint(message, uint64(size))
		}
		return message
	}
	switch method[strings.LastIndexByte(method, '/')+1:] {
	case "ModelReady":
		response = []byte{1 << 3, 1}
	case "ServerMetadata":
		response = appendText(appendText(nil, 1, "fake"), 2, "1.2.3")
	case "ModelMetadata":
		response = appendText(nil, 2, "1")
		response = appendBytes(response, 4, described("x", -1))
		response = appendBytes(appendBytes(response, 5, described("y", -1)), 5, described("z", -1))
	case "ModelInfer":
		var id string
		var x []float32
		err := eachField(request, func(field field) error {
			switch field.number {
			case 3:
				id = string(field.bytes)
			case 7:
				for i := 0; i+4 <= len(field.bytes); i += 4 {
					x = append(x, math.Float32frombits(binary.LittleEndian.Uint32(field.bytes[i:])))
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		y, z := f.compute(x)
		response = appendText(nil, 3, id)
		var raw []byte
		for i, values := range [][]float32{y, z} {
			var data []byte
			for _, v := range values {
				data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
			}
			message := described([]string{"y", "z"}[i], int64(len(values)))
			if f.has("typed") {
				message = appendBytes(message, 5, appendBytes(nil, 6, data))
			} else {
				raw = appendBytes(raw, 6, data)
			}
			response = appendBytes(response, 5, message)
		}
		response = append(response, raw...)
	default:
		return errors.New("unknown method " + method)
	}
	return stream.SendMsg(&response)
}
