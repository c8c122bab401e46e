package serving

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// rpc speaks the Open Inference Protocol over gRPC. Its messages are written and read by their field numbers
// (kserve/open-inference-protocol, specification/protocol/open_inference_grpc.proto).
type rpc struct {
	config Config
	conn   *grpc.ClientConn
	ids    ids
}

// oftenAsked is how soon a server that does not listen yet is asked again.
var oftenAsked = backoff.Config{BaseDelay: readyPause, Multiplier: 1, MaxDelay: readyPause}

// dialGRPC returns the client of a server on this machine. It connects with the first request.
func dialGRPC(c Config, address string) (client, error) {
	conn, err := grpc.NewClient("dns:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy(), grpc.WithConnectParams(grpc.ConnectParams{Backoff: oftenAsked, MinConnectTimeout: time.Second}),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(bytesCodec{}), grpc.MaxCallRecvMsgSize(tensor.DefaultMaxTensorBytes), grpc.MaxCallSendMsgSize(tensor.DefaultMaxTensorBytes)))
	r := &rpc{config: c, conn: conn}
	r.ids.repeated.Store(c.RepeatsIDs)
	return r, err
}

func (r *rpc) hangUp() { _ = r.conn.Close() }

// bytesCodec passes encoded messages through.
type bytesCodec struct{}

func (bytesCodec) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

func (bytesCodec) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), data...) // gRPC uses the memory again
	return nil
}

func (bytesCodec) Name() string { return "proto" }

// call does one request.
func (r *rpc) call(ctx context.Context, method string, request []byte) (response []byte, err error) {
	err = r.conn.Invoke(ctx, "/inference.GRPCInferenceService/"+method, &request, &response)
	if told, ok := status.FromError(err); ok && err != nil {
		err = fmt.Errorf("%s: %s: %s", method, told.Code(), shortText([]byte(told.Message())))
	}
	return response, err
}

// modelRequest has the name of the model in field 1, as most requests do.
func (r *rpc) modelRequest() []byte { return appendText(nil, 1, r.config.Model) }

func (r *rpc) ready(ctx context.Context) error {
	response, err := r.call(ctx, "ModelReady", r.modelRequest())
	if err != nil {
		return err
	}
	is := false
	if err := eachField(response, func(f field) error {
		if f.number == 1 {
			is = f.varint != 0
		}
		return nil
	}); err != nil {
		return err
	}
	if !is {
		return errors.New("the model is not ready")
	}
	return nil
}

func (r *rpc) about(ctx context.Context) (About, error) {
	told := About{RepeatsIDs: r.ids.repeated.Load()}
	server, err := r.call(ctx, "ServerMetadata", nil)
	if err == nil {
		err = eachField(server, func(f field) error {
			switch f.number {
			case 1:
				told.Server = string(f.bytes)
			case 2:
				told.Version = string(f.bytes)
			}
			return nil
		})
	}
	if err != nil {
		return About{}, fmt.Errorf("metadata of the server: %w", err)
	}
	model, err := r.call(ctx, "ModelMetadata", r.modelRequest())
	if err == nil {
		err = eachField(model, func(f field) (err error) {
			var v Told
			switch f.number {
			case 2:
				told.Versions = append(told.Versions, string(f.bytes))
			case 4:
				v, _, err = describedTensor(f.bytes)
				told.Inputs = append(told.Inputs, v)
			case 5:
				v, _, err = describedTensor(f.bytes)
				told.Outputs = append(told.Outputs, v)
			}
			return err
		})
	}
	if err != nil {
		return About{}, fmt.Errorf("metadata of the model: %w", err)
	}
	return told, nil
}

// describedTensor reads the name, datatype and shape that a message describes a tensor with, and its contents if it has some.
func describedTensor(message []byte) (t Told, contents []byte, err error) {
	t.Shape = []int64{}
	err = eachField(message, func(f field) error {
		switch f.number {
		case 1:
			t.Name = string(f.bytes)
		case 2:
			t.Datatype = string(f.bytes)
		case 3:
			if f.kind == protowire.VarintType {
				t.Shape = append(t.Shape, int64(f.varint))
				return nil
			}
			return eachVarint(f.bytes, func(v uint64) { t.Shape = append(t.Shape, int64(v)) })
		case 5:
			contents = f.bytes
		}
		return nil
	})
	return t, contents, err
}

func (r *rpc) infer(ctx context.Context, id string, inputs []named) ([]tensor.Tensor, error) {
	request := appendText(r.modelRequest(), 3, id)
	var raw []byte
	for _, in := range inputs {
		described := appendText(appendText(nil, 1, in.value.Name), 2, datatype(in.value))
		var shape []byte
		for _, size := range in.shape() {
			shape = protowire.AppendVarint(shape, uint64(size))
		}
		described = appendBytes(described, 3, shape)
		request = appendBytes(request, 5, described)
		data, err := in.raw()
		if err != nil {
			return nil, err
		}
		raw = appendBytes(raw, 7, data)
	}
	for _, out := range r.config.Outputs {
		request = appendBytes(request, 6, appendText(nil, 1, out.Name))
	}
	response, err := r.call(ctx, "ModelInfer", append(request, raw...))
	if err != nil {
		return nil, err
	}
	return r.response(id, response)
}

// response reads the outputs of an answer, which stand in raw_output_contents or in the fields of their types.
func (r *rpc) response(id string, response []byte) ([]tensor.Tensor, error) {
	type output struct {
		told     Told
		contents []byte
	}
	var answered string
	var outputs []output
	var raw [][]byte
	err := eachField(response, func(f field) (err error) {
		switch f.number {
		case 3:
			answered = string(f.bytes)
		case 5:
			var o output
			o.told, o.contents, err = describedTensor(f.bytes)
			outputs = append(outputs, o)
		case 6:
			raw = append(raw, f.bytes)
		}
		return err
	})
	if err == nil {
		err = r.ids.same(id, answered)
	}
	if err == nil && len(raw) > 0 && len(raw) != len(outputs) {
		err = fmt.Errorf("the answer has %d outputs, and the bytes of %d", len(outputs), len(raw))
	}
	if err != nil {
		return nil, err
	}
	all := make(map[string]tensor.Tensor)
	for i, o := range outputs {
		v, err := ofDatatype(o.told.Name, o.told.Datatype)
		if err != nil {
			return nil, err
		}
		t := tensor.Tensor{DType: v.DType, Shape: o.told.Shape}
		if len(raw) > 0 {
			t.Data = raw[i]
		} else if t.Data, err = typedContents(v.DType, o.contents); err != nil {
			return nil, fmt.Errorf("output %q: %w", v.Name, err)
		}
		if err := t.Validate(); err != nil {
			return nil, fmt.Errorf("output %q: %w", v.Name, err)
		}
		all[v.Name] = t
	}
	return inOrder(r.config, all)
}

// typedContents reads InferTensorContents, whose fields have one type of numbers each, as the bytes of a dtype.
func typedContents(dtype tensor.DType, contents []byte) (data []byte, err error) {
	size := dtype.Size()
	put := func(bits uint64) {
		var bytes [8]byte
		binary.LittleEndian.PutUint64(bytes[:], bits)
		data = append(data, bytes[:size]...)
	}
	err = eachField(contents, func(f field) error {
		switch {
		case f.number == 6 && dtype == tensor.Float32, f.number == 7 && dtype == tensor.Float64:
			if f.kind != protowire.BytesType {
				put(f.varint)
				return nil
			}
			data = append(data, f.bytes...)
			return nil
		case f.number >= 1 && f.number <= 5 && dtype.Class() != tensor.ClassFloat:
			if f.kind != protowire.BytesType {
				put(f.varint)
				return nil
			}
			return eachVarint(f.bytes, put)
		}
		return fmt.Errorf("its values stand in field %d, which is not for %s", f.number, dtype)
	})
	return data, err
}

// queued reads the extension for statistics (triton-inference-server/common, protobuf/grpc_service.proto).
func (r *rpc) queued(ctx context.Context) (queue, error) {
	request := r.modelRequest()
	var response []byte
	err := r.conn.Invoke(ctx, "/inference.GRPCInferenceService/ModelStatistics", &request, &response)
	switch status.Code(err) {
	case codes.OK:
	case codes.Unimplemented, codes.NotFound, codes.InvalidArgument:
		return queue{}, nil // it has no statistics
	default:
		return queue{}, err
	}
	var q queue
	const modelStats, inferenceStats, queueField = 1, 6, 3
	err = within(response, modelStats, func(stats []byte) error {
		return within(stats, inferenceStats, func(inference []byte) error {
			return within(inference, queueField, func(duration []byte) error {
				return eachField(duration, func(f field) error {
					switch f.number {
					case 1:
						q.count += int64(f.varint)
					case 2:
						q.total += time.Duration(min(f.varint, math.MaxInt64))
					}
					return nil
				})
			})
		})
	})
	return q, err
}

// field is a field of a message: bytes of one that has a length, or a number.
type field struct {
	number protowire.Number
	kind   protowire.Type
	bytes  []byte
	varint uint64
}

// eachField calls a function for each field of a message.
func eachField(message []byte, do func(field) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		f := field{number: number, kind: kind}
		switch kind {
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(message)
		case protowire.VarintType:
			f.varint, n = protowire.ConsumeVarint(message)
		case protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(message)
			f.varint = uint64(v)
		case protowire.Fixed64Type:
			f.varint, n = protowire.ConsumeFixed64(message)
		default:
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		if err := do(f); err != nil {
			return err
		}
	}
	return nil
}

// within calls a function for each message in a field.
func within(message []byte, number protowire.Number, do func([]byte) error) error {
	return eachField(message, func(f field) error {
		if f.number != number {
			return nil
		}
		return do(f.bytes)
	})
}

// eachVarint calls a function for each number of a packed field.
func eachVarint(packed []byte, do func(uint64)) error {
	for len(packed) > 0 {
		v, n := protowire.ConsumeVarint(packed)
		if n < 0 {
			return protowire.ParseError(n)
		}
		do(v)
		packed = packed[n:]
	}
	return nil
}

func appendText(dst []byte, number protowire.Number, text string) []byte {
	return protowire.AppendString(protowire.AppendTag(dst, number, protowire.BytesType), text)
}

func appendBytes(dst []byte, number protowire.Number, data []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, number, protowire.BytesType), data)
}
