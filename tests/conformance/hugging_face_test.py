# SPDX-License-Identifier: Apache-2.0
"""What docs/manual/howto/hugging-face.md says works, with small models in the place of published ones."""

import csv
import json

import skips
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch_pages import TorchPage
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    DistilBertConfig,
    DistilBertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
)

GOOD, BAD = ("a fine film", "truly moving", "I laughed"), ("a dull film", "truly boring", "I slept")
SIZES = {"vocab_size": 40}


def save(model, folder):
    """The model and a tokenizer of whole words, as published folders have them."""
    words = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.train_from_iterator(GOOD + BAD, trainers.WordLevelTrainer(special_tokens=["[PAD]", "[UNK]"]))
    names = {"model_input_names": ["input_ids", "attention_mask"]}
    PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]", **names).save_pretrained(folder)
    model.save_pretrained(folder)


class HuggingFace(TorchPage):
    def setUp(self):
        super().setUp()
        torch.manual_seed(0)
        classifier = DistilBertConfig(dim=16, hidden_dim=32, n_layers=4, n_heads=2, max_position_embeddings=64, **SIZES)
        save(DistilBertForSequenceClassification(classifier), self.folder / "my-model")
        save(GPT2LMHeadModel(GPT2Config(n_embd=16, n_layer=4, n_head=2, n_positions=64, **SIZES)), self.folder / "my-decoder")
        reviews = [{"text": BAD[i % 3] if i % 2 else GOOD[i % 3], "label": "bad" if i % 2 else "good"} for i in range(100)]
        (self.folder / "reviews.jsonl").write_text("".join(json.dumps(each) + "\n" for each in reviews))
        (self.folder / "book.txt").write_text(" ".join(GOOD + BAD) * 60)

    def last_epoch(self, run):
        with open(self.folder / "runs" / run / "epochs.csv", newline="") as file:
            return list(csv.DictReader(file))[-1]

    def test_classifier_and_decoder_are_tuned_and_loaded_again(self):
        said = self.do("hugging-face.md")
        self.assertEqual(len(said), 12)
        for label in ("1F1B", "PipeDream", "PipeOptim"):
            self.assertRegex(said[3], rf"(?m)^\| {label} +\| +\d+\.\d\d \(1\) \|$")
        self.check_classifier()
        self.check_decoder()

    def check_classifier(self):
        """It has the weights of the run that the page gives back."""
        tuned = AutoModelForSequenceClassification.from_pretrained(self.folder / "my-tuned-model").state_dict()
        (run,) = self.folder.glob("runs/tuned/PipeOptim-*")
        trained = load_file(run / "final.safetensors")
        self.assertEqual(set(trained), set(tuned))
        for name, tensor in trained.items():
            self.assertTrue(torch.equal(tensor, tuned[name]), name)

    def check_decoder(self):
        """In PyTorch it has the test loss of the run, up to rounding in float32."""
        tuned = AutoModelForCausalLM.from_pretrained(self.folder / "my-tuned-decoder").eval()
        self.assertFalse(tuned.config.tie_word_embeddings)
        data = load_file(self.folder / "book.safetensors")
        with torch.no_grad():
            logits = tuned(data["test.x"]).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), data["test.y"].flatten()).item()
        self.assertAlmostEqual(loss, float(self.last_epoch("book")["test_loss"]), delta=1e-5)


if __name__ == "__main__":
    torch.set_num_threads(1)
    skips.main()
