"""Makes the folders beside this script: python3 make.py, with the packages of the toolchain torch
(pipeline/toolchain/drivers/torch/requirements.lock). Weights are drawn from a seed.

encoder   BERT with a head for three classes and names for them, and the vocabulary of its tokenizer
vision    ViT for gray images of 8x8
decoder   Llama
resnet    ResNet for gray images of 16x16, without a head: convolutions alone
mixture   Mixtral, with four experts in its layer
states    Mamba, whose code goes through a sequence step by step
"""

import json
import pathlib

import torch
import transformers

here = pathlib.Path(__file__).resolve().parent
SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}


def save(name, model):
    model.eval().save_pretrained(here / name)


def main():
    torch.manual_seed(17)
    text = {"vocab_size": 60, "max_position_embeddings": 32, **SIZES}
    labels = {0: "billing", 1: "outage", 2: "praise"}
    encoder = transformers.BertConfig(id2label=labels, label2id={v: k for k, v in labels.items()}, **text)
    save("encoder", transformers.BertForSequenceClassification(encoder))
    save("vision", transformers.ViTForImageClassification(transformers.ViTConfig(image_size=8, patch_size=4, num_channels=1, num_labels=4, **SIZES)))
    save("decoder", transformers.LlamaForCausalLM(transformers.LlamaConfig(num_key_value_heads=2, bos_token_id=1, eos_token_id=2, **text)))
    resnet = transformers.ResNetConfig(image_size=16, num_channels=1, embedding_size=4, hidden_sizes=[4], depths=[1], layer_type="basic")
    save("resnet", transformers.ResNetModel(resnet))
    experts = transformers.MixtralConfig(num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2, sliding_window=None, bos_token_id=1, eos_token_id=2, **text)
    save("mixture", transformers.MixtralForCausalLM(experts))
    save("states", transformers.MambaForCausalLM(transformers.MambaConfig(vocab_size=60, hidden_size=16, num_hidden_layers=1, state_size=4, time_step_rank=2)))
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"word{i}" for i in range(55))]
    (here / "encoder" / "vocab.txt").write_text("\n".join(words) + "\n")
    tokenizer = {"tokenizer_class": "BertTokenizer", "model_input_names": ["input_ids", "token_type_ids", "attention_mask"]}
    (here / "encoder" / "tokenizer_config.json").write_text(json.dumps(tokenizer) + "\n")
    for file in here.glob("*/*"):
        file.chmod(0o644)


if __name__ == "__main__":
    main()
