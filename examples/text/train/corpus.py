"""The tickets: what customers write to a shop's support, made of templates.

Nothing here is anyone's text. A ticket has a problem, which alone decides its class,
and around it what says nothing or misleads: a greeting, a problem of another class that is
settled or denied, a closing, and typing errors. Every problem
can be about every product, and a fifth of these pairs is never seen in training: what
is tested on them is whether the sentence was read, not whether it was remembered.

All choices come from numpy's legacy generator, whose stream is frozen.
"""

CLASSES = ["billing", "delivery", "account", "fault"]

PRODUCTS = [
    "coffee machine", "headphones", "desk lamp", "backpack", "keyboard", "water bottle", "monitor", "office chair",
    "phone case", "blender", "bike light", "router", "rain jacket", "speaker", "toaster",
]

# By class; {p} is the product.
PROBLEMS = {
    "billing": [
        "my card was charged twice for the {p}",
        "i was billed for a {p} that i never bought",
        "the refund for the {p} is not in my bank account",
        "the invoice for the {p} shows the wrong amount",
        "the discount code was not taken off the price of the {p}",
        "you took more money than the {p} costs",
        "i need a receipt with the tax number for the {p}",
        "please stop the monthly payment for the {p} plan",
        "the payment for the {p} failed but the money is gone",
        "why do i pay a fee on top of the {p}",
    ],
    "delivery": [
        "the {p} has not arrived",
        "the parcel with the {p} went to the wrong address",
        "tracking for the {p} has not moved for a week",
        "i got a {p} in the wrong colour",
        "the courier left the {p} in the rain",
        "when will the {p} be shipped",
        "only half of the order came and the {p} is missing",
        "please send the {p} to my office instead",
        "the box was empty when i opened it and there was no {p}",
        "nobody rang and now the {p} is at some depot",
    ],
    "account": [
        "i cannot log in to order the {p}",
        "the password reset mail never comes and i want to buy the {p}",
        "my account was locked after i looked at the {p}",
        "please change the email address under which i bought the {p}",
        "the code on my phone is refused when i sign in to see the {p}",
        "someone else used my profile to look for a {p}",
        "delete my account and all data with the {p} order",
        "i have two profiles and the {p} is only in one of them",
        "the site says my user name is unknown since i reviewed the {p}",
        "how do i turn off the newsletter about the {p}",
    ],
    "fault": [
        "the {p} does not turn on",
        "the {p} broke after two days",
        "there is a crack in the {p}",
        "the {p} makes a loud noise when i use it",
        "a part of the {p} came off",
        "the {p} gets so hot that it smells",
        "the button on the {p} is stuck",
        "the {p} stopped working and the manual does not help",
        "the screws for the {p} do not fit",
        "the {p} leaks from below",
    ],
}

# Around a problem of another class, which is not what the ticket is about.
BEFORE = ["last time {q} but that is solved now", "i do not mean that {q}", "it is not that {q}", "my friend wrote to you that {q} but for me"]
AFTER = ["and no it is not that {q}", "you answered that {q} which is not so", "the other day {q} but that is solved", "do not tell me again that {q}"]

GREETINGS = ["hello", "hi there", "dear team", "good morning", "to whom it may concern"]
CLOSINGS = [
    "please help", "thanks", "what can i do", "i am waiting for your answer", "this is the second time that i write",
    "kind regards", "call me back please", "i expect better from you",
]


def held_back(number, product):
    """Whether training never sees this problem with this product, both by number."""
    return (3 * number + product) % 5 == 0


def pick(rng, choices):
    return choices[rng.randint(len(choices))]


def problem(rng, name, unseen):
    """Return a problem of class name, its number and the product's held back or not."""
    while True:
        number, product = rng.randint(len(PROBLEMS[name])), rng.randint(len(PRODUCTS))
        if held_back(number, product) == unseen:
            return PROBLEMS[name][number].format(p=PRODUCTS[product])


def ticket(rng, label, unseen):
    """Return one ticket of class number label, its problems held back or not."""
    name = CLASSES[label]
    parts = [problem(rng, name, unseen)]
    if rng.randint(3):
        other = problem(rng, pick(rng, [c for c in CLASSES if c != name]), unseen)
        if rng.randint(2):
            parts.insert(0, pick(rng, BEFORE).format(q=other))
        else:
            parts.append(pick(rng, AFTER).format(q=other))
    if rng.randint(2):
        parts.insert(0, pick(rng, GREETINGS))
    if rng.randint(2):
        parts.append(pick(rng, CLOSINGS))
    return " ".join(mistyped(rng, word) for word in " ".join(parts).split())


TYPO_ONE_IN = 10


def mistyped(rng, word):
    """Return the word, and one time in TYPO_ONE_IN with a letter lost, doubled or swapped."""
    if len(word) < 4 or rng.randint(TYPO_ONE_IN):
        return word
    at = 1 + rng.randint(len(word) - 2)
    return [
        word[:at] + word[at + 1 :],
        word[:at] + word[at] + word[at:],
        word[:at] + word[at + 1] + word[at] + word[at + 2 :],
    ][rng.randint(3)]


def clean_words():
    """Return every word that is in a ticket before typing errors, sorted."""
    texts = [text for problems in PROBLEMS.values() for text in problems]
    texts += PRODUCTS + BEFORE + AFTER + GREETINGS + CLOSINGS
    return sorted({word for text in texts for word in text.split()} - {"{p}", "{q}"})
