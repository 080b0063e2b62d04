"""A training whose steps take 2 ms, with a validation after each epoch. It is stopped after its window."""

import time

from pipeline import training, validation

STEP_S = 0.002


def main():
    train, valid = training(), validation()
    for epoch in range(10_000):
        for _ in train:
            time.sleep(STEP_S)
        for _ in valid:
            time.sleep(STEP_S)
        if epoch % 100 == 99:
            print(f"epoch {epoch}")


if __name__ == "__main__":
    main()
