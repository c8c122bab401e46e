//go:build cgo

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

// grpcServer serves inference.GRPCInferenceService. Messages are read and written by the field numbers of
// specification/protocol/open_inference_grpc.proto, and tensors are raw.
func (h *handler) grpcServer() *grpc.Server {
	return grpc.NewServer(grpc.ForceServerCodec(bytesCodec{}), grpc.MaxRecvMsgSize(int(h.maxBytes)), grpc.MaxConcurrentStreams(64),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			full, _ := grpc.MethodFromServerStream(stream)
			method, found := strings.CutPrefix(full, "/inference.GRPCInferenceService/")
			if !found {
				return status.Errorf(codes.Unimplemented, "no service of %.80q", full)
			}
			var request []byte
			if err := stream.RecvMsg(&request); err != nil {
				return err
			}
			response, err := h.call(stream.Context(), method, request)
			if err != nil {
				return err
			}
			return stream.SendMsg(&response)
		}))
}

// bytesCodec passes messages on as bytes.
type bytesCodec struct{}

func (bytesCodec) Name() string { return "proto" }

func (bytesCodec) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

func (bytesCodec) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = slices.Clone(data) // gRPC uses its memory again
	return nil
}

// field is one of a message: bytes, or a number.
type field struct {
	number protowire.Number
	bytes  []byte
	varint uint64
}

// fields reads a message.
func fields(message []byte) (all []field, err error) {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		f, rest := field{number: number}, message[n:]
		switch kind {
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(rest)
		case protowire.VarintType:
			f.varint, n = protowire.ConsumeVarint(rest)
		default:
			n = protowire.ConsumeFieldValue(number, kind, rest)
		}
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		all, message = append(all, f), rest[n:]
	}
	return all, nil
}

func appendBytes[T string | []byte](to []byte, number protowire.Number, v T) []byte {
	return protowire.AppendBytes(protowire.AppendTag(to, number, protowire.BytesType), []byte(v))
}

// described appends a message with the name, datatype and shape of a tensor, as fields 1 to 3.
func described(to []byte, number protowire.Number, name, datatype string, shape []int64) []byte {
	var packed []byte
	for _, d := range shape {
		packed = protowire.AppendVarint(packed, uint64(d))
	}
	message := appendBytes(appendBytes(nil, 1, name), 2, datatype)
	return appendBytes(to, number, appendBytes(message, 3, packed))
}

var yes = protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1)

func (h *handler) call(ctx context.Context, method string, message []byte) ([]byte, error) {
	request, err := fields(message)
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "the request is no message: %v", err)
	}
	name := ""
	for _, f := range request {
		if f.number == 1 {
			name = string(f.bytes)
		}
	}
	if strings.HasPrefix(method, "Model") && name != h.model.name {
		return nil, status.Errorf(codes.NotFound, "no model %.80q: this server has %q", name, h.model.name)
	}
	switch method {
	case "ServerLive", "ServerReady", "ModelReady":
		return yes, nil
	case "ServerMetadata":
		return appendBytes(appendBytes(appendBytes(nil, 1, serverName), 2, version), 3, binaryExtension), nil
	case "ModelMetadata":
		told := appendBytes(appendBytes(appendBytes(nil, 1, name), 2, "1"), 3, platform)
		for _, v := range h.model.inputs {
			told = described(told, 4, v.name, v.kind.name, v.shape)
		}
		for _, v := range h.model.outputs {
			told = described(told, 5, v.name, v.kind.name, v.shape)
		}
		return told, nil
	case "ModelInfer":
		select {
		case h.turns <- struct{}{}:
			defer func() { <-h.turns }()
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		}
		response, err := h.inferRaw(request)
		if err != nil {
			return nil, status.Error(codes.InvalidArgument, err.Error())
		}
		return response, nil
	}
	return nil, status.Errorf(codes.Unimplemented, "no method %.80q", method)
}

// inferRaw answers ModelInfer.
func (h *handler) inferRaw(request []field) ([]byte, error) {
	var in []array
	var raw [][]byte
	var wanted []string
	response := appendBytes(appendBytes(nil, 1, h.model.name), 2, "1")
	for _, f := range request {
		switch f.number {
		case 3:
			response = appendBytes(response, 3, f.bytes) // id
		case 5:
			t, err := h.inputMessage(f.bytes)
			if err != nil {
				return nil, err
			}
			in = append(in, t)
		case 6:
			name, err := fields(f.bytes)
			if err != nil || len(name) == 0 || name[0].number != 1 {
				return nil, errors.New("an output without a name")
			}
			wanted = append(wanted, string(name[0].bytes))
		case 7:
			raw = append(raw, f.bytes)
		}
	}
	if len(raw) != len(in) {
		return nil, fmt.Errorf("%d inputs and %d raw_input_contents: want one for each input", len(in), len(raw))
	}
	for i := range in {
		if err := in[i].setBytes(raw[i]); err != nil {
			return nil, fmt.Errorf("input %s: %w", in[i].name, err)
		}
	}
	out, err := h.model.run(in)
	if err != nil {
		return nil, err
	}
	if len(wanted) == 0 {
		wanted = names(h.model.outputs)
	}
	var contents []byte
	for _, name := range wanted {
		i := slices.IndexFunc(out, func(t array) bool { return t.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no output %.80q: want some of %v", name, names(h.model.outputs))
		}
		response = described(response, 5, name, out[i].kind.name, out[i].shape)
		contents = appendBytes(contents, 6, out[i].bytes())
	}
	return append(response, contents...), nil
}

// inputMessage reads an InferInputTensor.
func (h *handler) inputMessage(message []byte) (array, error) {
	told, err := fields(message)
	if err != nil {
		return array{}, err
	}
	name, datatype, shape := "", "", []int64{}
	for _, f := range told {
		switch f.number {
		case 1:
			name = string(f.bytes)
		case 2:
			datatype = string(f.bytes)
		case 3:
			if f.bytes == nil {
				shape = append(shape, int64(f.varint))
			}
			for rest := f.bytes; len(rest) > 0; {
				d, n := protowire.ConsumeVarint(rest)
				if n < 0 {
					return array{}, protowire.ParseError(n)
				}
				shape, rest = append(shape, int64(d)), rest[n:]
			}
		case 5:
			return array{}, fmt.Errorf("input %.80q has contents: send raw_input_contents", name)
		}
	}
	t, err := h.model.input(name)
	if err == nil && datatype != t.kind.name {
		err = fmt.Errorf("input %s: datatype %.40q: want %s", name, datatype, t.kind.name)
	}
	t.shape = shape
	return t, err
}
