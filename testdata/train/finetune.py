"""Fine-tunes a small Llama by Hugging Face's Trainer, which runs the loop: one line
of this program has nearly all of the memory."""
import tempfile

import torch
import transformers

import oracle


class Texts(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        tokens = torch.randint(0, 8000, (1024,))
        return {"input_ids": tokens, "labels": tokens}


def main():
    options = oracle.parser(__doc__).parse_args()
    config = transformers.LlamaConfig(
        hidden_size=512, intermediate_size=1376, num_hidden_layers=8, num_attention_heads=8, num_key_value_heads=8,
        vocab_size=8000, attn_implementation="eager")
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            output_dir=folder, per_device_train_batch_size=4, max_steps=4, report_to=[], save_strategy="no", disable_tqdm=True)
        trainer = transformers.Trainer(model=transformers.LlamaForCausalLM(config), args=arguments, train_dataset=Texts())
        trainer.train()
    oracle.finish(options, trainer)


main()
