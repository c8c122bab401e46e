/* An operator of ONNX Runtime, mlpromote.test.Halve: y = x / 2, for float32 of any shape.
   gcc -shared -fPIC -I FOLDER_OF_onnxruntime_c_api.h halve.c -o libhalve.so */
#include <stdlib.h>

#include "onnxruntime_c_api.h"

static const OrtApi* api;

static void* create(const OrtCustomOp* op, const OrtApi* a, const OrtKernelInfo* info) {
  (void)op, (void)info;
  api = a;
  return malloc(1);
}

static void destroy(void* kernel) { free(kernel); }

static void compute(void* kernel, OrtKernelContext* context) {
  (void)kernel;
  const OrtValue* in = NULL;
  OrtValue* out = NULL;
  OrtTensorTypeAndShapeInfo* shape = NULL;
  size_t rank = 0, count = 0;
  int64_t dims[8];
  float *x = NULL, *y = NULL;
  if (api->KernelContext_GetInput(context, 0, &in) || api->GetTensorTypeAndShape(in, &shape) ||
      api->GetDimensionsCount(shape, &rank) || rank > 8 || api->GetDimensions(shape, dims, rank) ||
      api->GetTensorShapeElementCount(shape, &count) || api->KernelContext_GetOutput(context, 0, dims, rank, &out) ||
      api->GetTensorMutableData((OrtValue*)in, (void**)&x) || api->GetTensorMutableData(out, (void**)&y))
    abort();
  for (size_t i = 0; i < count; i++) y[i] = x[i] / 2;
  api->ReleaseTensorTypeAndShapeInfo(shape);
}

static const char* name(const OrtCustomOp* op) { (void)op; return "Halve"; }
static const char* provider(const OrtCustomOp* op) { (void)op; return NULL; }
static ONNXTensorElementDataType type(const OrtCustomOp* op, size_t i) { (void)op, (void)i; return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT; }
static size_t one(const OrtCustomOp* op) { (void)op; return 1; }
static OrtCustomOpInputOutputCharacteristic required(const OrtCustomOp* op, size_t i) { (void)op, (void)i; return INPUT_OUTPUT_REQUIRED; }
static OrtMemType memory(const OrtCustomOp* op, size_t i) { (void)op, (void)i; return OrtMemTypeDefault; }

static OrtCustomOp halve = {
    .version = 13, /* of the structure: all that is set here, and nothing later */
    .CreateKernel = create, .GetName = name, .GetExecutionProviderType = provider,
    .GetInputType = type, .GetInputTypeCount = one, .GetOutputType = type, .GetOutputTypeCount = one,
    .KernelCompute = compute, .KernelDestroy = destroy,
    .GetInputCharacteristic = required, .GetOutputCharacteristic = required, .GetInputMemoryType = memory,
};

OrtStatus* RegisterCustomOps(OrtSessionOptions* options, const OrtApiBase* base) {
  const OrtApi* a = base->GetApi(13);
  OrtCustomOpDomain* domain = NULL;
  OrtStatus* failed = a->CreateCustomOpDomain("mlpromote.test", &domain);
  if (!failed) failed = a->CustomOpDomain_Add(domain, &halve);
  return failed ? failed : a->AddCustomOpDomain(options, domain);
}
