//go:build cgo

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// asServer makes the program of these tests the server itself.
const asServer = "MLPROMOTE_TEST_SERVE"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), self, args...) // start ends it by a signal
	cmd.Env = append(os.Environ(), asServer+"=1")
	return cmd
}

// server is a running program.
type server struct{ url, grpc string }

// start serves a model. At the end of the test the program must end by itself after SIGTERM.
func start(t *testing.T, model string, more ...string) server {
	t.Helper()
	record, err := toolchaintest.Installer(t, "onnxruntime").Find("onnxruntime")
	if err != nil {
		t.Fatal(err)
	}
	cmd := command(t, append([]string{"-model", model, "-http", "127.0.0.1:0", "-library", record.LibraryPath()}, more...)...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stderr).ReadString('\n')
	_, urls, ok := strings.Cut(strings.TrimSpace(line), " on ")
	if err != nil || !ok {
		t.Fatalf("%q, %v, %v", line, err, cmd.Wait())
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("after SIGTERM: %v", err)
		}
	})
	url, address, _ := strings.Cut(urls, " and grpc://")
	return server{url, address}
}

// send posts a body, or gets if it is nil.
func (s server) send(t *testing.T, path string, body []byte, header ...string) (int, http.Header, []byte) {
	t.Helper()
	method := http.MethodPost
	if body == nil {
		method = http.MethodGet
	}
	request, err := http.NewRequestWithContext(t.Context(), method, s.url+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if len(header) > 0 {
		request.Header.Set(header[0], header[1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, answer
}

// ask sends JSON and decodes the answer, which must be a success.
func (s server) ask(t *testing.T, path string, document, answer any) {
	t.Helper()
	body, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	status, _, got := s.send(t, path, body)
	if status != http.StatusOK {
		t.Fatalf("%s: %d %s", path, status, got)
	}
	if err := json.Unmarshal(got, answer); err != nil {
		t.Fatalf("%s: %v", got, err)
	}
}

// binaryRequest returns a request with binary tensors after its JSON, and the length of the JSON.
func binaryRequest(t *testing.T, document any, tensors ...[]byte) (body []byte, length string) {
	t.Helper()
	header, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return append(header, bytes.Join(tensors, nil)...), strconv.Itoa(len(header))
}

// outputs are those of an answer with binary tensors.
func outputs(t *testing.T, header http.Header, answer []byte) map[string][]byte {
	t.Helper()
	n, err := strconv.Atoi(header.Get(headerLength))
	if err != nil {
		t.Fatalf("%v: %.300s", err, answer)
	}
	var document struct {
		ID      string
		Outputs []struct {
			Name       string
			Parameters struct {
				Size int `json:"binary_data_size"`
			}
		}
	}
	if err := json.Unmarshal(answer[:n], &document); err != nil {
		t.Fatal(err)
	}
	found := map[string][]byte{"id": []byte(document.ID)}
	rest := answer[n:]
	for _, o := range document.Outputs {
		found[o.Name], rest = rest[:o.Parameters.Size], rest[o.Parameters.Size:]
	}
	if len(rest) > 0 {
		t.Errorf("%d bytes are left", len(rest))
	}
	return found
}

type object map[string]any

const digits = "../digits/digits.onnx"

// images returns the cases of the digits example, with their labels.
func images(t *testing.T) (image, label tensor.Tensor) {
	t.Helper()
	all, err := tensorfile.ReadFile("../digits/cases/cases-00000.safetensors", tensorfile.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return all["image"], all["label"]
}

// Each of the protocols on HTTP has the same answers, bit by bit, and they are right as often as README.md of the example has it.
func TestDigits(t *testing.T) {
	t.Parallel()
	s := start(t, digits, "-name", "digits")
	image, label := images(t)
	body, length := binaryRequest(t, object{"id": "a", "parameters": object{"binary_data_output": true}, "inputs": []object{
		{"name": "image", "datatype": "FP32", "shape": image.Shape, "parameters": object{"binary_data_size": len(image.Data)}}}}, image.Data)
	status, header, answer := s.send(t, "/v2/models/digits/infer", body, headerLength, length)
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, answer)
	}
	found := outputs(t, header, answer)
	logits := tensor.Tensor{DType: tensor.Float32, Shape: []int64{image.Shape[0], 10}, Data: found["logits"]}
	if err := logits.Validate(); err != nil || string(found["id"]) != "a" {
		t.Fatalf("%v, id %s", err, found["id"])
	}
	right := 0
	values := logits.Float64s()
	for i, want := range label.Float64s() {
		best := 0
		for j := range 10 {
			if values[i*10+j] > values[i*10+best] {
				best = j
			}
		}
		if best == int(want) {
			right++
		}
	}
	if right != 356 {
		t.Errorf("%d right, want 356", right)
	}
	var flat []float32
	for _, v := range image.Float64s() {
		flat = append(flat, float32(v))
	}
	same := func(what string, got []float32) {
		t.Helper()
		raw, err := binary.Append(nil, binary.LittleEndian, got)
		if err != nil || !bytes.Equal(raw, logits.Data) {
			t.Errorf("%s: %d values that differ, %v", what, len(got), err)
		}
	}
	var oip struct {
		ID      string
		Outputs []struct{ Data []float32 }
	}
	s.ask(t, "/v2/models/digits/infer", object{"id": "b", "inputs": []object{{"name": "image", "datatype": "FP32", "shape": image.Shape, "data": flat}},
		"outputs": []object{{"name": "logits"}}}, &oip)
	same("OIP, JSON", oip.Outputs[0].Data)
	if oip.ID != "b" {
		t.Errorf("id %s", oip.ID)
	}
	list := make([][][][]float32, image.Shape[0])
	for i := range list {
		list[i] = make([][][]float32, 1)
		for y := range 8 {
			list[i][0] = append(list[i][0], flat[i*64+y*8:][:8])
		}
	}
	join := func(rows [][]float32) (all []float32) {
		for _, row := range rows {
			all = append(all, row...)
		}
		return all
	}
	var served struct{ Outputs, Predictions, Logits [][]float32 }
	s.ask(t, "/v1/models/digits:predict", object{"inputs": list}, &served)
	same("TensorFlow Serving, inputs", join(served.Outputs))
	s.ask(t, "/v1/models/digits:predict", object{"instances": list}, &served)
	same("TensorFlow Serving, instances", join(served.Predictions))
	s.ask(t, "/predict", object{"image": list}, &served)
	same("plain", join(served.Logits))
}

// Requests at the same time do not mix.
func TestAtTheSameTime(t *testing.T) {
	t.Parallel()
	s := start(t, digits)
	image, _ := images(t)
	ask := func(i int) []byte {
		body, length := binaryRequest(t, object{"parameters": object{"binary_data_output": true}, "inputs": []object{
			{"name": "image", "datatype": "FP32", "shape": []int{1, 1, 8, 8}, "parameters": object{"binary_data_size": 256}}}}, image.Data[i*256:][:256])
		status, header, answer := s.send(t, "/v2/models/m/infer", body, headerLength, length)
		if status != http.StatusOK {
			t.Errorf("%d %s", status, answer)
			return nil
		}
		return outputs(t, header, answer)["logits"]
	}
	var alone [24][]byte
	for i := range alone {
		alone[i] = ask(i)
	}
	var clients sync.WaitGroup
	for i := range alone {
		clients.Go(func() {
			if got := ask(i); !bytes.Equal(got, alone[i]) {
				t.Errorf("image %d: %x, and alone %x", i, got, alone[i])
			}
		})
	}
	clients.Wait()
}

func TestDescribesItself(t *testing.T) {
	t.Parallel()
	s := start(t, digits, "-name", "digits")
	for path, want := range map[string]string{
		"/v2":                     `{"extensions":["binary_tensor_data"],"name":"mlpromote-serve","version":"` + version + `"}`,
		"/v2/health/live":         "",
		"/v2/health/ready":        "",
		"/v2/models/digits/ready": "",
		"/v2/models/digits": `{"inputs":[{"name":"image","datatype":"FP32","shape":[-1,1,8,8]}],"name":"digits",` +
			`"outputs":[{"name":"logits","datatype":"FP32","shape":[-1,10]}],"platform":"onnxruntime_onnx","versions":["1"]}`,
		"/v1/models/digits": `{"model_version_status":[{"state":"AVAILABLE","status":{"error_code":"OK","error_message":""},"version":"1"}]}`,
	} {
		if status, _, got := s.send(t, path, nil); status != http.StatusOK || string(got) != want {
			t.Errorf("%s: %d %s\nwant %s", path, status, got, want)
		}
	}
}

// columns are inputs of types.onnx: their values in JSON and as bytes.
func columns(t *testing.T) map[string]struct {
	datatype string
	json     any
	bytes    []byte
} {
	t.Helper()
	all := make(map[string]struct {
		datatype string
		json     any
		bytes    []byte
	})
	add := func(name, datatype string, js, values any) {
		raw, err := binary.Append(nil, binary.LittleEndian, values)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = struct {
			datatype string
			json     any
			bytes    []byte
		}{datatype, js, raw}
	}
	number := func(name, datatype string, values any) { add(name, datatype, values, values) }
	number("f32", "FP32", []float32{0.1, -1e-45})
	number("f64", "FP64", []float64{0.1, math.MaxFloat64})
	add("f16", "FP16", []float32{1.5, -65504}, []uint16{0x3e00, 0xfbff})
	number("i8", "INT8", []int8{-128, 127})
	number("i16", "INT16", []int16{-32768, 32767})
	number("i32", "INT32", []int32{math.MinInt32, math.MaxInt32})
	number("i64", "INT64", []int64{math.MinInt64, math.MaxInt64})
	add("u8", "UINT8", []int{0, 255}, []uint8{0, 255}) // json writes []uint8 as text
	number("u16", "UINT16", []uint16{0, math.MaxUint16})
	number("u32", "UINT32", []uint32{0, math.MaxUint32})
	number("u64", "UINT64", []uint64{0, math.MaxUint64})
	number("b", "BOOL", []bool{true, false})
	add("s", "BYTES", []string{"日", ""}, []byte("\x03\x00\x00\x00日\x00\x00\x00\x00"))
	return all
}

// Values of every type come back as they were sent.
func TestTypes(t *testing.T) {
	t.Parallel()
	s := start(t, "testdata/types.onnx")
	scalar := []byte{0, 0, 0x20, 0x40}
	asJSON := []object{{"name": "x_0", "datatype": "FP32", "shape": []int{}, "data": []float32{2.5}}}
	asBytes := []object{{"name": "x_0", "datatype": "FP32", "shape": []int{}, "parameters": object{"binary_data_size": 4}}}
	raw := [][]byte{scalar}
	want := map[string]any{"y_0": []float32{2.5}, "y_1": []float32{0.1}}
	wantBytes := map[string][]byte{"y_0": scalar, "y_1": {0xcd, 0xcc, 0xcc, 0x3d}, "id": {}}
	for name, c := range columns(t) {
		asJSON = append(asJSON, object{"name": "x_" + name, "datatype": c.datatype, "shape": []int{1, 2}, "data": c.json})
		asBytes = append(asBytes, object{"name": "x_" + name, "datatype": c.datatype, "shape": []int{1, 2}, "parameters": object{"binary_data_size": len(c.bytes)}})
		raw = append(raw, c.bytes)
		want["y_"+name], wantBytes["y_"+name] = c.json, c.bytes
	}
	var answer struct {
		Outputs []struct {
			Name string
			Data json.RawMessage
		}
	}
	s.ask(t, "/v2/models/m/infer", object{"inputs": asJSON}, &answer)
	if len(answer.Outputs) != len(want) {
		t.Errorf("%d outputs, want %d", len(answer.Outputs), len(want))
	}
	for _, o := range answer.Outputs {
		written, err := json.Marshal(want[o.Name])
		if err != nil || string(written) != string(o.Data) {
			t.Errorf("%s: %s, want %s (%v)", o.Name, o.Data, written, err)
		}
	}
	body, length := binaryRequest(t, object{"inputs": asBytes, "parameters": object{"binary_data_output": true}}, raw...)
	status, header, got := s.send(t, "/v2/models/m/infer", body, headerLength, length)
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, got)
	}
	if found := outputs(t, header, got); !reflect.DeepEqual(found, wantBytes) {
		t.Errorf("got  %x\nwant %x", found, wantBytes)
	}
}

// A refusal names the reason, and the server goes on.
func TestRefuses(t *testing.T) {
	t.Parallel()
	s := start(t, digits, "-max-bytes", "100000")
	const infer = "/v2/models/m/infer"
	image := func(datatype, shape, more string) string {
		return fmt.Sprintf(`{"inputs":[{"name":"image","datatype":%q,"shape":%s,%s}]}`, datatype, shape, more)
	}
	zeros := `"data":[` + strings.Repeat("0,", 63) + `0]`
	for name, c := range map[string]struct {
		path, body string
		length     string
		status     int
		want       string
	}{
		"another model":     {path: "/v2/models/x/infer", body: "{}", status: 404, want: `no model "x"`},
		"another address":   {path: "/v3", body: "{}", status: 404, want: "no POST /v3 here"},
		"no JSON":           {path: infer, body: "[", status: 400, want: "no JSON of this form"},
		"two documents":     {path: infer, body: "{}{}", status: 400, want: "more after the JSON"},
		"no inputs":         {path: infer, body: "{}", status: 400, want: "no input image"},
		"another input":     {path: infer, body: `{"inputs":[{"name":"x"}]}`, status: 400, want: `no input "x": want [image]`},
		"another type":      {path: infer, body: image("FP64", "[1,1,8,8]", zeros), status: 400, want: `datatype "FP64": want FP32`},
		"another shape":     {path: infer, body: image("FP32", "[1,8,8]", zeros), status: 400, want: "shape [1 8 8]: want [-1 1 8 8]"},
		"fewer elements":    {path: infer, body: image("FP32", "[2,1,8,8]", zeros), status: 400, want: "64 elements: shape [2 1 8 8] wants 128"},
		"huge shape":        {path: infer, body: image("FP32", "[2147483647,2147483647,8,8]", zeros), status: 400, want: "at most 2147483647 elements"},
		"negative shape":    {path: infer, body: image("FP32", "[-1,1,8,8]", zeros), status: 400, want: "at least 1"},
		"text":              {path: infer, body: image("FP32", "[1,1,8,8]", strings.Replace(zeros, "0", `"0"`, 1)), status: 400, want: "0: want a number"},
		"too large":         {path: infer, body: strings.Repeat(" ", 100001), status: 413, want: "more than 100000 bytes"},
		"header beyond":     {path: infer, body: "{}", length: "3", status: 400, want: "Inference-Header-Content-Length"},
		"bytes that lack":   {path: infer, body: image("FP32", "[1,1,8,8]", `"parameters":{"binary_data_size":256}`), status: 400, want: "0 bytes left"},
		"bytes left":        {path: infer, body: image("FP32", "[1,1,8,8]", zeros) + "1234", length: strconv.Itoa(len(image("FP32", "[1,1,8,8]", zeros))), status: 400, want: "4 bytes of the request belong to no input"},
		"unknown output":    {path: infer, body: strings.Replace(image("FP32", "[1,1,8,8]", zeros), "{", `{"outputs":[{"name":"y"}],`, 1), status: 400, want: `no output "y"`},
		"no verb":           {path: "/v1/models/m:classify", body: "{}", status: 400, want: "want m:predict"},
		"neither":           {path: "/v1/models/m:predict", body: "{}", status: 400, want: `want \"inputs\" or \"instances\"`},
		"uneven lists":      {path: "/predict", body: `{"image":[[0],[0,0]]}`, status: 400, want: "lists of different lengths"},
		"an input too many": {path: "/predict", body: `{"image":[[[[0]]]],"x":1}`, status: 400, want: `no input \"x\"`},
	} {
		var header []string
		if c.length != "" {
			header = []string{headerLength, c.length}
		}
		status, _, got := s.send(t, c.path, []byte(c.body), header...)
		var answer struct{ Error string }
		if err := json.Unmarshal(got, &answer); err != nil || status != c.status || !strings.Contains(answer.Error, strings.ReplaceAll(c.want, `\"`, `"`)) {
			t.Errorf("%s: %d %s, want %d with %s", name, status, got, c.status, c.want)
		}
	}
	more := start(t, digits)
	if status, _, got := more.send(t, infer, bytes.Repeat([]byte(" "), maxJSON+1)); status != http.StatusBadRequest || !strings.Contains(string(got), "16777217 bytes of JSON") {
		t.Errorf("%d %s", status, got)
	}
	if status, _, got := s.send(t, infer, []byte(image("FP32", "[1,1,8,8]", zeros))); status != http.StatusOK {
		t.Errorf("%d %s", status, got)
	}
}

// JSON has no NaN, so an answer with one is refused unless it is asked for in binary.
func TestNaN(t *testing.T) {
	t.Parallel()
	s := start(t, digits)
	nan := bytes.Repeat([]byte{0, 0, 0xc0, 0x7f}, 64)
	for binaryOutput, want := range map[bool]int{false: http.StatusBadRequest, true: http.StatusOK} {
		body, length := binaryRequest(t, object{"parameters": object{"binary_data_output": binaryOutput}, "inputs": []object{
			{"name": "image", "datatype": "FP32", "shape": []int{1, 1, 8, 8}, "parameters": object{"binary_data_size": len(nan)}}}}, nan)
		if status, _, answer := s.send(t, "/v2/models/m/infer", body, headerLength, length); status != want {
			t.Errorf("%d %.200s, want %d", status, answer, want)
		}
	}
}

func TestStartsNotWithout(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"/libonnxruntime.so": {"-model", digits}, // beside the program of the test
		"load /none.so":      {"-model", digits, "-library", "/none.so"},
		"flag provided but":  {"-port", "1"},
		"want flags alone":   {digits},
	} {
		out, err := command(t, args...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%v: %v %s, want %s", args, err, out, want)
		}
	}
}

// Over gRPC, the server has the same answers as over HTTP.
func TestGRPC(t *testing.T) {
	t.Parallel()
	s := start(t, digits, "-name", "digits", "-grpc", "127.0.0.1:0")
	conn, err := grpc.NewClient(s.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy(), grpc.WithDefaultCallOptions(grpc.ForceCodec(bytesCodec{})))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	call := func(method string, request []byte) (response []byte, err error) {
		err = conn.Invoke(t.Context(), "/inference.GRPCInferenceService/"+method, &request, &response)
		return response, err
	}
	model := appendBytes(nil, 1, "digits")
	for method, want := range map[string]string{
		"ServerLive": "1:1", "ServerReady": "1:1", "ModelReady": "1:1",
		"ServerMetadata": "1:mlpromote-serve 2:" + version + " 3:binary_tensor_data",
		"ModelMetadata": "1:digits 2:1 3:onnxruntime_onnx 4:" + string(described(nil, 1, "image", "FP32", []int64{-1, 1, 8, 8})[2:]) +
			" 5:" + string(described(nil, 1, "logits", "FP32", []int64{-1, 10})[2:]),
	} {
		response, err := call(method, model)
		if got := shown(t, response); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", method, got, err, want)
		}
	}
	image, _ := images(t)
	input := described(nil, 5, "image", "FP32", image.Shape)
	request := appendBytes(append(appendBytes(slices.Clone(model), 3, "c"), input...), 7, image.Data)
	response, err := call("ModelInfer", request)
	if err != nil {
		t.Fatal(err)
	}
	body, length := binaryRequest(t, object{"parameters": object{"binary_data_output": true}, "inputs": []object{
		{"name": "image", "datatype": "FP32", "shape": image.Shape, "parameters": object{"binary_data_size": len(image.Data)}}}}, image.Data)
	_, header, answer := s.send(t, "/v2/models/digits/infer", body, headerLength, length)
	want := "1:digits 2:1 3:c 5:" + string(described(nil, 1, "logits", "FP32", []int64{image.Shape[0], 10})[2:]) + " 6:" + string(outputs(t, header, answer)["logits"])
	if got := shown(t, response); got != want {
		t.Errorf("got  %.200q\nwant %.200q", got, want)
	}
	for name, c := range map[string]struct {
		method  string
		request []byte
		code    codes.Code
	}{
		"another method": {"Other", nil, codes.Unimplemented},
		"another model":  {"ModelReady", appendBytes(nil, 1, "x"), codes.NotFound},
		"no message":     {"ModelInfer", []byte{0xff}, codes.InvalidArgument},
		"no raw tensor":  {"ModelInfer", append(slices.Clone(model), input...), codes.InvalidArgument},
		"fewer bytes":    {"ModelInfer", appendBytes(append(slices.Clone(model), input...), 7, "1234"), codes.InvalidArgument},
		"unknown output": {"ModelInfer", appendBytes(slices.Clone(request), 6, appendBytes(nil, 1, "y")), codes.InvalidArgument},
	} {
		if _, err := call(c.method, c.request); status.Code(err) != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
}

// shown has the fields of a message, each with its number.
func shown(t *testing.T, message []byte) string {
	t.Helper()
	all, err := fields(message)
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	for _, f := range all {
		if f.bytes == nil {
			f.bytes = []byte(strconv.FormatUint(f.varint, 10))
		}
		parts = append(parts, fmt.Sprintf("%d:%s", f.number, f.bytes))
	}
	return strings.Join(parts, " ")
}
