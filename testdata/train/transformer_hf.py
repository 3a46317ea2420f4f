"""Trains a model of Hugging Face transformers, built from a configuration: a small
Llama or BERT, with or without gradient checkpointing, or Llama with LoRA by peft; or
GPT-2 small in its own size. All compute the loss in the model."""
import torch
import transformers

import oracle

LENGTH, BATCH = 256, 8


def llama():
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=8000, hidden_size=512, intermediate_size=1376, num_hidden_layers=6, num_attention_heads=8,
        num_key_value_heads=4, max_position_embeddings=LENGTH, use_cache=False))


def bert():
    return transformers.BertForMaskedLM(transformers.BertConfig(
        vocab_size=8000, hidden_size=512, intermediate_size=2048, num_hidden_layers=6, num_attention_heads=8,
        max_position_embeddings=LENGTH))


def gpt2():
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(use_cache=False))


MODELS = {"llama": llama, "bert": bert, "gpt2": gpt2}


def with_lora(model):
    import peft
    return peft.get_peft_model(model, peft.LoraConfig(r=8, lora_alpha=16, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))


def main():
    parser = oracle.parser(__doc__)
    parser.add_argument("--model", choices=MODELS, default="llama")
    parser.add_argument("--checkpointing", action="store_true", help="compute activations again in the backward pass")
    parser.add_argument("--lora", action="store_true", help="train low-rank additions only")
    options = parser.parse_args()
    torch.manual_seed(0)
    model = MODELS[options.model]()
    if options.lora:
        model = with_lora(model)
    if options.checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        model.enable_input_require_grads()
    model.cuda().train()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
    tokens = torch.zeros(BATCH, LENGTH, dtype=torch.long, device="cuda")
    for _ in range(options.steps):
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(f"{options.steps} steps, peak {torch.cuda.max_memory_allocated()} allocated")
    oracle.finish(options, model, optimizer, tokens, loss)


if __name__ == "__main__":
    main()
