"""Fine-tunes a small Llama with LoRA (peft) in bfloat16, and lets accelerate look for
the largest batch that fits: attempts run out of memory until one does not."""
import accelerate.utils
import peft
import torch
import transformers

import oracle

LENGTH, FIRST_BATCH = 512, 16


def adapted():
    config = transformers.LlamaConfig(
        hidden_size=512, intermediate_size=1376, num_hidden_layers=8, num_attention_heads=8, num_key_value_heads=8,
        vocab_size=8000, attn_implementation="eager")
    lora = peft.LoraConfig(r=8, lora_alpha=16, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    return peft.get_peft_model(transformers.LlamaForCausalLM(config).to(torch.bfloat16), lora).cuda()


def main():
    options = oracle.parser(__doc__).parse_args()
    torch.manual_seed(0)

    @accelerate.utils.find_executable_batch_size(starting_batch_size=FIRST_BATCH)
    def train(batch):
        model = adapted()
        optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
        tokens = torch.zeros(batch, LENGTH, dtype=torch.long, device="cuda")
        for _ in range(options.steps):
            loss = model(input_ids=tokens, labels=tokens).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        print(f"{options.steps} steps with batches of {batch}, peak {torch.cuda.max_memory_allocated()} allocated")
        return model, optimizer, tokens, loss

    oracle.finish(options, *train())


if __name__ == "__main__":
    main()
